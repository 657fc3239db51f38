"""Figures of the embedded reader on unseen worlds."""
