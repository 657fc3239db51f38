"""Datasets of questions: loading and ordering."""
