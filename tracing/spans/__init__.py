"""Spans of credit, and where spans go: a file, a collector, nowhere."""
