"""Hopscope: multi-step RAG workflows that tell what each retrieval was worth."""

__version__ = "0.1.0"
