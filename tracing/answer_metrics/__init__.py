"""How good an answer is: one metric per file, each with `build(...)`."""

KIND = "metrics"
"""What `hopscope list` and entry points call them; see `runtime.components`."""
