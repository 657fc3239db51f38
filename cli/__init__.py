"""The `hopscope` command: commands, options, views."""
