"""Nodes of the workflows that select passages among candidates."""
