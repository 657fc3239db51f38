"""Measuring: meters, credit, policies, error decomposition, reports, spans of credit."""
