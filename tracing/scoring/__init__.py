"""Scores of answers: the metric port, and many runs by several metrics."""
