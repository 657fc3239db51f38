"""Training of the embedded reader."""
