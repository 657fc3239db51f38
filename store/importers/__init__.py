"""Runs that other programs made, stored in an experiment: importing.py; right answers from a file:
golds.py."""
