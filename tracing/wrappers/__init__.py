"""Readers and entailments that remember replies or count their cost."""
