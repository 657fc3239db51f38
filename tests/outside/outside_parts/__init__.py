"""One component of each kind that Hopscope takes from other distributions."""
