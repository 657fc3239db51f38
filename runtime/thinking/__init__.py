"""Thoughts of reasoning models: marks, chat templates, their place in replies."""
