"""Policies: whether another retrieval is worth it, one file for each. They may ask the reader, and
meters; what that costs is the run's.
"""
