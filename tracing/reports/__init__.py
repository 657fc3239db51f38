"""A run with its credits as records that tables and JSON show."""
