"""Intervals, tests, correlations and means over questions."""
