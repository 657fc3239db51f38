"""Models that turn texts into vectors, and the rules by which each wants its texts."""
