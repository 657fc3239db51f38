"""Figures of the embedded reader on worlds it has never seen."""
