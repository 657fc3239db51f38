"""Rankings and utility judgments of passages by a reader: prompts and parsers."""
