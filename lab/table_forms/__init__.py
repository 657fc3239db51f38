"""Tables as text, Markdown, LaTeX, CSV and on the terminal."""
