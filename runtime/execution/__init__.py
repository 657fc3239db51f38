"""Execution of a workflow: state, the step seam, `run`, checkpoints."""
