"""The answers that stand behind recorded values. Loads no numpy: `hopscope show` starts with it."""

from collections.abc import Iterable

from hopscope.runtime.types import GameValues, MeasuredAnswers


def answers(games: Iterable[GameValues]) -> dict[str, MeasuredAnswers]:
    """The recorded answers by the hash of their evidence, of all meters together."""
    found: dict[str, MeasuredAnswers] = {}
    for value in (value for game in games for value in game.values):
        if value.evidence is not None and value.answers is not None:
            before = found.get(value.evidence, MeasuredAnswers())
            found[value.evidence] = MeasuredAnswers(
                tokens=before.tokens or value.answers.tokens,
                groups=before.groups or value.answers.groups,
            )
    return found
