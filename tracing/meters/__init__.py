"""Utility meters by file name: what evidence is worth to a reader."""
