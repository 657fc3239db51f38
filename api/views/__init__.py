"""Views of runs and credits on a terminal and in a notebook."""
