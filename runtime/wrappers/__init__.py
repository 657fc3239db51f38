"""Readers around readers: replies kept for good, requests of threads gathered."""
