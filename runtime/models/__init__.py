"""Model checkpoints: finding, checking and loading them; batches."""
