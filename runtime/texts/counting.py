"""A number with its noun in messages."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 run`, `2 runs`, `1,000 runs`; the plural ends in s unless it is given, also with a verb.

    counted(cut, "query is", "queries are")
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
