"""Signals without gold for the decision whether to retrieve again."""
