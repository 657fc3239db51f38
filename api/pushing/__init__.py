"""Runs go to services, and people's labels come back: what is sent, and the record of it."""
