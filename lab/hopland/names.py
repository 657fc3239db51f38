"""Names composed of syllables, so that an unseen name consists of known pieces.

Invariant: `split_of` assigns every name to exactly one split by a hash of its full text.
Worlds of the split "train" use only names of that split, so training never sees an entity
of a test question.
"""

import hashlib
import random
from typing import Literal

Split = Literal["train", "test"]
EntityKind = Literal[
    "person",
    "film",
    "city",
    "company",
    "university",
    "country",
    "language",
    "currency",
    "continent",
    "year",
]

STEMS = (
    "Bal Bran Cal Cor Dal Dar Del Dor Dul Fal Fel Gal Gor Gam Hal Har Hel Hor Jav Jol Kal Kel "
    "Kor Lam Lor Mal Mar Mel Mig Mor Nal Nor Pal Pel Quor Ral Rov Sal Ser Sil Tal Tor Val Vor "
    "Wer Wil Yal Zam"
).split()
ENDINGS = (
    "ard beck bert by dal den dor fax feld gard kin lock mar mir mond nel path ric rin gan "
    "baugh don mer hal lon va ven vik wick win wood wyn"
).split()
GIVEN_NAMES = (
    "Ada Aldo Alma Anton Arlo Bela Bruno Cleo Dario Dina Edda Egon Elsa Emil Enzo Faye Felix "
    "Greta Gustav Hugo Ida Igor Inga Iris Ivan Jonas Kira Lars Lena Leo Livia Marco Mila Nico "
    "Nora Olga Oscar Otto Pia Rosa"
).split()
FILM_NOUNS = (
    "Bridge Castle Children Dance Doctor Dream Empire Flower Garden Ghost Harbor House Island "
    "King Lady Legend Light Moon Night Prince Queen Return River Road Secret Shadow Song Spirit "
    "Storm Voice"
).split()
CITY_WORDS = "Port Fort Lake Mount Saint New Old Upper Lower Grand".split()
COMPANY_WORDS = "Works Group Motors Foods Systems Pictures Press Industries Media Tools".split()
UNIVERSITY_WORDS = "University College Institute Academy".split()
COUNTRY_ENDINGS = "land ia stan".split()
LANGUAGE_ENDINGS = "ish ese".split()
CURRENCY_ENDINGS = "mark dollar".split()
CONTINENT_ENDINGS = "ica".split()
YEARS = range(1900, 2020)


def split_of(name: str) -> Split:
    """The split of a full name: one name in five is for tests."""
    digest = hashlib.sha256(name.encode()).digest()
    return "test" if digest[0] % 5 == 0 else "train"


def word(rng: random.Random) -> str:
    """One invented word, such as "Balvik"."""
    return rng.choice(STEMS) + rng.choice(ENDINGS)


def draw(kind: EntityKind, rng: random.Random) -> str:
    """A name of this kind, of either split."""
    match kind:
        case "person":
            return f"{rng.choice(GIVEN_NAMES)} {word(rng)}"
        case "film":
            return f"{rng.choice(FILM_NOUNS)} of {word(rng)}"
        case "city":
            return f"{rng.choice(CITY_WORDS)} {word(rng)}"
        case "company":
            return f"{word(rng)} {rng.choice(COMPANY_WORDS)}"
        case "university":
            return f"{word(rng)} {rng.choice(UNIVERSITY_WORDS)}"
        case "country":
            return rng.choice(STEMS) + rng.choice(COUNTRY_ENDINGS)
        case "language":
            return rng.choice(STEMS) + rng.choice(LANGUAGE_ENDINGS)
        case "currency":
            return rng.choice(STEMS) + rng.choice(CURRENCY_ENDINGS)
        case "continent":
            return rng.choice(STEMS) + rng.choice(CONTINENT_ENDINGS)
        case "year":
            return str(rng.choice(YEARS))


class Forge:
    """Draws names of one split, none twice and none of the reserved ones."""

    def __init__(self, rng: random.Random, split: Split, reserved: frozenset[str]) -> None:
        self._rng = rng
        self._split = split
        self._taken = set(reserved)

    def fresh(self, kind: EntityKind) -> str:
        """A new name, which is not drawn again."""
        name = self.passing(kind)
        self._taken.add(name)
        return name

    def passing(self, kind: EntityKind) -> str:
        """A name of no entity, which may be drawn again."""
        while True:
            name = draw(kind, self._rng)
            if name not in self._taken and split_of(name) == self._split:
                return name
