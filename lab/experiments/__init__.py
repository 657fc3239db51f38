"""Experiments: settings, plan, workers, execution, estimates, results."""
