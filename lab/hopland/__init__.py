"""Hopland: a fictional world made from a seed, and the small reader trained on it.

The package holds the generator (`names`, `relations`, `world`, `questions`), what turns
a world into training text (`contexts`, `tokenizer`, `blocks`, `train`), what measures
and ships the reader (`evaluate`, `export`) and the shipped corpus (`data`).
"""
