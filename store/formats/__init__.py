"""The formats of runs that can be imported. The first one that fits a file reads it."""

KIND = "formats"
