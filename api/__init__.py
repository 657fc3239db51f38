"""The library behind `import hopscope`: sessions, parts by name, credit of stored runs."""
