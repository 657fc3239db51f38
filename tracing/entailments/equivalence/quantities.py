"""Signs and units of numbers, which the words of a text do not show: "-5", "$5" and "5" have one
word, and "5 km" shares its number with "5 miles".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hopscope.tracing.entailments.equivalence.words import Text, is_number

NEGATIVE = "negativenumber"
"""Stands for a sign in a text that is read for quantities."""
_SIGN = re.compile(r"[-\u2212\u2013\u2012](?<![\w.,)\]%-].)(?=[$\u00a3\u20ac\u00a5]?\.?\d)")
"""A sign just before a number, after white space, a bracket or nothing."""
_AFTER_NUMBER = re.compile(r"\d\s*$")
_BELOW = re.compile(r"(?i)\bbelow\s{1,3}zero\b")
_HEAT_BEFORE = re.compile(
    r"(?i)(?<![\d.,])\d[\d.,]{0,15}(?:\s?\u00b0|\s{1,3}degrees?)?\s?"
    r"(?:[cf]|celsius|fahrenheit)?\s{1,3}$"
)
_LONGEST_HEAT = 48
"""Characters before "below zero" in which its number stands."""
_CURRENCY = re.compile(
    r"(?i)([$\u00a3\u20ac\u00a5])\s?(\d(?:[\d.,]{0,30}\d)?)(\s?(?:k|mn?|bn|thousand|million|billion|"
    r"trillion)\b)?"
)
_CURRENCIES = {"$": "dollars", "\u00a3": "pounds", "\u20ac": "euros", "\u00a5": "yen"}
_NOTABLE = re.compile(r"(?i)[-\u2212\u2013\u2012$\u00a3\u20ac\u00a5\u00b0]|minus|negative|below")
_ASKS_BELOW = re.compile(
    r"(?i)below|minus|negative|loss|lost|lose|deficit|debt|fall|fell|drop|decrease|decline|B\.?C"
)
"""In such a question the sign may be left out."""
_DEGREES = frozenset(["degree", "degrees", "deg"])

_LENGTH, _MASS, _HEAT, _TIME, _MONEY, _VOLUME = "length", "mass", "heat", "time", "money", "volume"
_SPEED, _AREA = "speed", "area"
_KINDS = {
    _LENGTH: "m km cm mm ft inch mile yard furlong fathom light-year",
    _MASS: "kg g mg lbs oz ton tonne stone",
    _HEAT: "celsius fahrenheit kelvin",
    _TIME: "second minute hour day week fortnight month year decade century",
    _MONEY: "dollar lbs euro yen cent penny rupee franc mark peso rouble yuan",
    _VOLUME: "l ml gallon pint quart barrel",
    _SPEED: "mph kph knot",
    _AREA: "acre hectare",
}
_SPELLED = {
    "lb": "lbs", "pound": "lbs", "pounds": "lbs", "sterling": "lbs", "foot": "ft", "feet": "ft",
    "inches": "inch", "in": "inch", "mi": "mile", "yd": "yard", "ounce": "oz", "ounces": "oz",
    "tons": "ton", "tonnes": "tonne", "stones": "stone", "c": "celsius", "centigrade": "celsius",
    "f": "fahrenheit", "k": "kelvin", "sec": "second", "secs": "second", "s": "second",
    "min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "h": "hour", "yr": "year",
    "yrs": "year", "centuries": "century", "usd": "dollar", "bucks": "dollar", "quid": "lbs",
    "eur": "euro", "pence": "penny", "pennies": "penny", "rubles": "rouble", "ruble": "rouble",
    "marks": "mark", "litre": "l", "liter": "l", "litres": "l", "liters": "l", "kmh": "kph",
}  # fmt: skip
_UNITS = {unit: kind for kind, units in _KINDS.items() for unit in units.split()}
_PER_HOUR = {"km": "kph", "mile": "mph"}
_BOTH = {"lbs": frozenset([_MASS, _MONEY])}
"""A pound is both."""


class Quantity(NamedTuple):
    """A number of a text."""

    number: str
    negative: bool
    unit: str
    """In one spelling; empty without a known one."""

    def other_unit(self, other: "Quantity") -> bool:
        """Whether both have units of one kind, and different ones."""
        if not self.unit or not other.unit or self.unit == other.unit:
            return False
        return not _kinds(self.unit).isdisjoint(_kinds(other.unit))


def quantities(text: Text) -> list[Quantity]:
    """The numbers of a text in their order, each once."""
    if not text.numbers:
        return []
    words = text.words
    if _NOTABLE.search(text.raw):
        marked = _SIGN.sub(_marked, _with_sign_first(text.raw))
        words = Text(_CURRENCY.sub(_worded, marked)).words
    found = (_quantity(words, at) for at, word in enumerate(words) if is_number(word))
    return list(dict.fromkeys(found))


def may_be_signed(raw: str) -> bool:
    """Whether a text may hold a negative number."""
    return bool(_NOTABLE.search(raw))


def sign_matters(question: Text) -> bool:
    """Whether an answer to it may not leave the sign out."""
    return not _ASKS_BELOW.search(question.raw)


def contradicted(
    golds: Sequence[Sequence[Quantity]], answer: Sequence[Quantity], *, signed: bool
) -> bool:
    """Whether the answer has the numbers of golds with another sign or unit.

    A gold agrees if for each of its numbers that the answer has, sign and unit agree or are not
    given. Another sign contradicts unless some gold agrees; another unit unless a gold with a unit
    does, since the same number alone says little beside it.

    Args:
        signed: whether the sign counts.
    """
    by_number: dict[str, list[Quantity]] = {}
    for said in answer:
        by_number.setdefault(said.number, []).append(said)
    by_sign = by_unit = agreed = with_unit = False
    for gold in golds:
        pairs = [[(one, said) for said in by_number.get(one.number, ())] for one in gold]
        known = [each for each in pairs if each]
        if not known:
            continue
        if signed and any(
            all(one.negative != said.negative for one, said in each) for each in known
        ):
            by_sign = True
        elif any(all(one.other_unit(said) for one, said in each) for each in known):
            by_unit = True
        else:
            agreed = True
            with_unit |= any(
                one.unit and one.unit == said.unit for each in known for one, said in each
            )
    return (by_sign and not agreed) or (by_unit and not with_unit)


def _with_sign_first(raw: str) -> str:
    """ "41 degrees below zero" with the sign before the number."""
    parts: list[str] = []
    done = 0
    for below in _BELOW.finditer(raw):
        begin = max(done, below.start() - _LONGEST_HEAT)
        if heat := _HEAT_BEFORE.search(raw, begin, below.start()):
            parts += [raw[done : heat.start()], f"{NEGATIVE} "]
            done = heat.start()
    return "".join([*parts, raw[done:]])


def _marked(sign: re.Match[str]) -> str:
    """The sign, unless it stands between two numbers of a range: "3 -5"."""
    before = sign.string[max(0, sign.start() - 4) : sign.start()]
    return sign[0] if _AFTER_NUMBER.search(before) else f" {NEGATIVE} "


def _worded(amount: re.Match[str]) -> str:
    symbol, number, scale = amount.groups()
    return f" {number}{scale or ''} {_CURRENCIES[symbol]} "


def _quantity(words: Sequence[str], at: int) -> Quantity:
    negative = at > 0 and words[at - 1] in (NEGATIVE, "minus", "negative")
    after = list(words[at + 1 : at + 4])
    if after and after[0] in _DEGREES:
        after = after[1:]
    unit = _unit(after[0]) if after else ""
    if unit in _PER_HOUR and (after[1:2] == ["h"] or after[1:3] == ["per", "hour"]):
        unit = _PER_HOUR[unit]
    return Quantity(words[at], negative, unit)


def _unit(word: str) -> str:
    spelled = _SPELLED.get(word, word)
    if spelled in _UNITS:
        return spelled
    short = spelled.removesuffix("s")
    return short if short in _UNITS and len(short) > 2 else ""


def _kinds(unit: str) -> frozenset[str]:
    return _BOTH.get(unit) or frozenset([_UNITS[unit]])
