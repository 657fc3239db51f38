"""Prompts that all workflows and meters share, fitted to the reader."""
