"""Limits of a run, its ledger, and prices."""
