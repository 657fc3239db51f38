"""How good an answer is: one metric per file, each with `build(...)`."""
