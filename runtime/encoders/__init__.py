"""Models that turn texts into vectors, and the input rules of each."""
