"""`python -m hopscope.cli` is the same as `hopscope`."""

from hopscope.cli.main import main

main()
