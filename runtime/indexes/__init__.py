"""Index folders and the passages in them."""
