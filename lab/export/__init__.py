"""Experiments in forms that other tools read."""
