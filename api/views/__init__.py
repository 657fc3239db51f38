"""Runs and credits as a person sees them: on a terminal, in a notebook."""
