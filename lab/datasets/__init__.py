"""The known forms of question datasets, one file each.

A form is a module with `matches(record)`, True for its own records only, and `read(record)`,
which reads a record or raises `Malformed`.
"""


class Malformed(ValueError):
    """A record does not fit its form; the message names the field and the remedy."""
