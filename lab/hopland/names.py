"""Names put together from syllables, so that a name never seen is made of known pieces.

Invariant: `split_of` sends every name to exactly one split by a hash of its full text.
Worlds of the split "train" use only names of that split, so no entity that a test
question speaks of was ever seen in training.
"""

import hashlib
import random
from typing import Literal

Split = Literal["train", "test"]
Kind = Literal[
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
    "Bal Bran Cal Cor Dal Dar Del Dor Dun Ebb Ed El Fal Fen Fer Gal Gar Gor Gwen Hal Har Hel "
    "Hor Il Is Jar Jol Kal Kar Kel Kor Lan Lar Len Lor Mal Mar Mel Mis Mor Nal Nar Nel Nor Ol "
    "Or Pal Pel Por Quin Ral Ran Rel Ros Sal Ser Sil Sor Tal Tar Tel Tor Ul Ur Val Var Vel Vor "
    "Wal Wen Wil Yal Yor Zan Zel Zor"
).split()
ENDINGS = (
    "a adin aine al amar an ander ara ard aric as beck bert by da den dor dra en era eth fax "
    "feld gard go ia ian ida ik in ion is ka kin la len lin lo lock ma mer mir mond na nel nia "
    "nor o ora os path ra rick rin ros sa set shaw sin son ta tar ten thal ton tor us va van ven "
    "vik vin wick win wood wyn ya yn"
).split()
ADJECTIVES = (
    "Amber Ancient Bitter Black Blue Bold Brave Bright Broken Burning Calm Clear Cold Copper "
    "Crimson Dark Deep Distant Dry Early Empty Endless Faded Fallen False Final First Frozen "
    "Gentle Golden Grand Gray Green Happy Heavy Hidden High Hollow Humble Idle Iron Ivory Last "
    "Late Little Lonely Long Lost Loud Lucky Mighty Narrow New Noble Northern Old Pale Patient "
    "Perfect Proud Purple Quick Quiet Rapid Red Restless Rising Royal Rusty Sacred Scarlet "
    "Second Secret Shining Silent Silver Simple Slow Small Soft Southern Stolen Strange Sudden "
    "Summer Sweet Tall Tender Third Thirsty True Velvet Violet Warm Western White Wild Winter "
    "Wise Wooden Young"
).split()
NOUNS = (
    "Anchor Apple Arrow Autumn Avenue Bay Bell Bird Boat Bridge Candle Canyon Castle Circle "
    "Cloud Coast Compass Corner Crown Dance Dawn Desert Door Dream Dust Eagle Echo Empire Falcon "
    "Feather Field Fire Flower Forest Fortune Fountain Fox Garden Gate Ghost Glass Harbor Harvest "
    "Heart Highway Hill Horizon Horse House Island Journey Key Kingdom Ladder Lake Lamp Lantern "
    "Letter Lion Market Meadow Mirror Moon Morning Mountain Night Ocean Orchard Palace Paper Path "
    "Pearl Piano Planet Promise Queen Rain River Road Rose Sail Shadow Shore Signal Sky Snow Song "
    "Spring Star Station Stone Storm Stranger Street Sword Tide Tower Train Valley Voice Wave Wind "
    "Window Wolf"
).split()
FIRST_NAMES, LAST_NAMES = STEMS, (*ADJECTIVES, *NOUNS)
"""Persons are called by two words that are one token each; which two, is new for each."""
COMPANY_WORDS = "Works Group Motors Foods Systems Pictures Press Industries Media Tools".split()
UNIVERSITY_WORDS = "University College Institute Academy".split()
YEARS = range(1900, 2020)


def split_of(name: str) -> Split:
    """The split a full name belongs to: one name in five is kept for tests."""
    digest = hashlib.sha256(name.encode()).digest()
    return "test" if digest[0] % 5 == 0 else "train"


def word(rng: random.Random) -> str:
    """One made-up word, such as "Miskin"."""
    return rng.choice(STEMS) + rng.choice(ENDINGS)


def draw(kind: Kind, rng: random.Random) -> str:
    """Any name of this kind, whatever its split."""
    match kind:
        case "person":
            return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
        case "film":
            return f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"
        case "company":
            return f"{word(rng)} {rng.choice(COMPANY_WORDS)}"
        case "university":
            return f"{word(rng)} {rng.choice(UNIVERSITY_WORDS)}"
        case "year":
            return str(rng.choice(YEARS))
        case _:
            return word(rng)


class Forge:
    """Draws names of one split, none twice and none that is reserved."""

    def __init__(self, rng: random.Random, split: Split, reserved: frozenset[str]) -> None:
        self._rng = rng
        self._split = split
        self._taken = set(reserved)

    def fresh(self, kind: Kind) -> str:
        """A name not drawn before; it counts as taken from now on."""
        name = self.passing(kind)
        self._taken.add(name)
        return name

    def passing(self, kind: Kind) -> str:
        """A name that no entity bears, and that stays free."""
        while True:
            name = draw(kind, self._rng)
            if name not in self._taken and split_of(name) == self._split:
                return name
