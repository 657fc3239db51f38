"""From a reader's replies to its belief in an answer, and to semantic entropy."""
