"""Learning and judging policies on stored runs."""
