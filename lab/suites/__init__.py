"""Inputs, statistics and figures that the validity suites share."""
