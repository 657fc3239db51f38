"""Stands here so that pytest puts this folder on the path and tests can import its helpers."""
