"""Expressions that name retrievers, and retrievers composed from them."""
