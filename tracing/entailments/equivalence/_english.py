"""English words with a meaning for the comparison of answers."""

import re

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

MONTHS = frozenset(
    (
        "january february march april may june july august september october november december "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    ).split()
)

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth"
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
"""For questions in lower case."""
