"""Commands that report on stored runs."""
