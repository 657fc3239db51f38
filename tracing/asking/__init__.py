"""Requests of meters to a reader: contexts, overflow, replies that were cut off."""
