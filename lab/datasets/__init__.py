"""The forms in which datasets of questions come, one file each.

A form is a module with `matches(record)`, true of its records and no other form's, and
`read(record)`, which reads one or raises `Malformed`.
"""


class Malformed(ValueError):
    """A record is not of its form; says which field and what to do."""
