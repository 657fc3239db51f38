"""Records of corpus files: JSON objects, their fields, their chunks."""
