"""Hopland: a fictional world generated from a seed, and the small reader trained on it.

The package contains the generator (`names`, `relations`, `world`, `questions`), the training
examples (`contexts`, `turns`, `training`), the evaluation of the reader (`cases`, `evaluation`),
the small reader (`small`) and the program that writes the shipped corpus (`make`).
"""
