"""English words with a meaning for the comparison of answers."""

import re
from itertools import permutations

FUNCTION_WORDS = frozenset(
    (
        "a an the of in on at to by for from with and or as is are was were be been being it its "
        "he she they his her their this that these those who whom whose which what when where how "
        "why do does did has have had not no so than then there also into about over under after "
        "before between during i you we my your our me him them us s t if but can could would will "
        "may might such some any all both each more most other only called known named name"
    ).split()
)
"""Words that any answer may contain."""

DENIALS = frozenset("not never neither nor isnt wasnt didnt doesnt cannot wont arent".split())
ASKING = frozenset("who whose whom which what where when why how".split())
AUXILIARIES = frozenset(
    "is are was were do does did can could has have had will would should may might must".split()
)
"""First words of yes/no questions."""

NEGATING = frozenset(["non", "anti"])
PREFIXES = ("in", "im", "il", "ir", "un", "non", "dis", "anti", "mis", "ab", "a")
"""Make a word its opposite."""
_OPPOSITES = """
north south|northern southern|northeast southeast|northwest southwest|east west|eastern western
left right|upper lower|top bottom|inner outer|internal external|interior exterior|inside outside
first last|early late|earliest latest|oldest youngest|elder younger|old new|senior junior
male female|man woman|men women|boy girl|maternal paternal|mother father|king queen|prince princess
husband wife|brother sister|son daughter|uncle aunt|nephew niece
positive negative|plus minus|odd even|maximum minimum|major minor|majority minority|more less
most least|largest smallest|biggest smallest|longest shortest|highest lowest|greater lesser
increase decrease|increased decreased|rise fall|rising falling|up down|high low|hot cold|wet dry
heavy light|hard soft|strong weak|fast slow|long short|big small|large small|thick thin|deep shallow
convex concave|acid alkaline|acute chronic|concave convex|clockwise anticlockwise
solid liquid|public private|military civilian|domestic foreign|urban rural|rich poor
singular plural|active passive|vertical horizontal|arrival departure|import export|imports exports
before after|summer winter|spring autumn|day night|sunrise sunset|dawn dusk|open closed|yes no
"""


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for pair in _OPPOSITES.replace("\n", "|").split("|"):
        for one, other in permutations(pair.split(), 2):
            found[one] = found.get(one, frozenset()) | {other}
    return found


OPPOSITES = _opposites()
RELATIVES = frozenset(
    (
        "husband wife widow widower son daughter father mother brother sister cousin nephew niece "
        "uncle aunt grandson granddaughter grandfather grandmother student pupil teacher friend "
        "rival successor predecessor assistant colleague partner"
    ).split()
)
"""Before "of", they name somebody by another."""
RIVALS = frozenset(
    (
        "against unlike beat beats beating defeated defeats defeating succeeded succeeds "
        "succeeding replaced replaces replacing than overtook married"
    ).split()
)
"""Stand before somebody who is named beside the answer."""
OUTDONE = frozenset("succeeded followed replaced beaten defeated preceded overtaken".split())
"""The same before "by"."""
COMPARING = (
    RIVALS
    | OUTDONE
    | RELATIVES
    | frozenset(
        "defeat succeed replace follow precede marry lose lost loser losing opponent runner".split()
    )
)
"""In a question, they ask for such a person."""

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
MONTH_NUMBERS = (
    {name: number for number, name in enumerate(_MONTHS, 1)}
    | {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
    | {"sept": 9}
)
MONTHS = frozenset(MONTH_NUMBERS)
WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
PARTS = (
    dict.fromkeys(("early", "beginning", "start"), (0, 40))
    | dict.fromkeys(("mid", "middle"), (30, 70))
    | dict.fromkeys(("late", "end"), (60, 100))
)
"""Parts of a decade or a century, in percent of it."""
NEAR = frozenset("about approximately approx around circa c ca roughly nearly almost some".split())
"""Say that a number or a time is not exact."""

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_NUMERALS = "II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX".split()

NUMBERS = (
    {word: number for number, word in enumerate(_UNITS)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
    | {word: number for number, word in enumerate(_ORDINALS, 1)}
    | {"dozen": 12, "twice": 2, "once": 1}
)
SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
DECADES = {f"{word[:-1]}ies": 1900 + 10 * number for number, word in enumerate(_TENS, 2)}
"""Decades by their names, as of the last century."""
UNITS = (
    dict.fromkeys(("metre", "meter", "metres", "meters"), "m")
    | dict.fromkeys(("kilometre", "kilometer", "kilometres", "kilometers", "kms"), "km")
    | dict.fromkeys(("centimetre", "centimeter", "centimetres", "centimeters"), "cm")
    | dict.fromkeys(("millimetre", "millimeter", "millimetres", "millimeters"), "mm")
    | dict.fromkeys(("kilogram", "kilogramme", "kilograms", "kilogrammes", "kilos", "kgs"), "kg")
    | dict.fromkeys(("gram", "gramme", "grams", "grammes"), "g")
    | dict.fromkeys(("pound", "pounds", "lb"), "lbs")
    | dict.fromkeys(("foot", "feet"), "ft")
    | {"inches": "inch", "litre": "l", "liter": "l", "litres": "l", "liters": "l"}
)
"""Short forms of units, for those after a number."""
NUMERIC = NUMBERS.keys() | SCALES.keys()
ROMAN = {numeral: number for number, numeral in enumerate(_NUMERALS, 2)} | {"I": 1}

REFUSAL = re.compile(
    r"(?i)\b(?:sorry|unable|cannot (?:find|answer|determine)|could ?n[o']?t (?:find|determine)|"
    r"couldn.t find|no (?:information|record|evidence|answer)|not (?:aware|sure|clear|known)|"
    r"unknown|unclear|don.t (?:know|have)|do not (?:know|have)|"
    r"does(?: not|n.t) (?:have|exist|appear)|"
    r"did not find|didn.t find|not mentioned|not specif\w+|there (?:is|are|was|were) no)\b"
)
"""Phrases of a refusal."""

REFUSING = frozenset(
    (
        "sorry unable cannot no not unknown unclear dont don doesnt doesn didnt didn could couldnt "
        "couldn couldnot"
    ).split()
)
"""Every refusal contains one of these."""

WHERE = re.compile(
    r"wh(?<!\w..)(?:ere|(?:ich|at) (?:\w+ ){0,3}(?:country|city|town|state|river))\b"
)
WHEN = re.compile(
    r"wh(?<!\w..)(?:en|(?:ich|at) (?:\w+ ){0,2}(?:years?|decade|century|month|day))\b"
)
HOW_MANY = re.compile(
    r"\bhow (?!old)\w+|\bwhat (?:number|percent\w*|share|height|length|distance)\b"
)
EXACT_DAY = re.compile(
    r"(?:wh(?:at|ich)|exact)\s(?:\w+\s)?(?:day|date)\b|\b(?:the date of|birth(?:day|date))\b"
)
"""For questions in lower case."""
