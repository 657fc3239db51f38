"""Runs in SQL: reading, writing, seals, appraisals."""
