"""The tables and figures of the papers, each paper's in one file."""
