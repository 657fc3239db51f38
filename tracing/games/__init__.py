"""Cooperative games over a run: players, coalitions, the evidence of each."""
