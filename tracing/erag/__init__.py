"""eRAG: labels of passages by the reader alone, and measures of rankings."""
