"""Commands for components of your own."""
