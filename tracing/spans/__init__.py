"""Spans of credit, and the export of spans to a file or a collector."""
