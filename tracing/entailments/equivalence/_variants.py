"""Names that are used for one another: short and foreign forms of first names, and of places."""

_FIRST_NAMES = """
abigail abby gail
abraham abe
albert al bert
alexander alex aleksandr alexandr alexandre alessandro alejandro
alexandra aleksandra
alfred alf fred
andrew andy drew andrei andrey andre
anthony tony antony antonio anton
arthur art
barbara barb
benjamin ben
bernard bernie
catherine katherine kathryn catharine kate katie kathy cathy katharine ekaterina
charles charlie chuck karl carlos
christine christina chris
christopher chris cristoforo
daniel dan danny
david dave
deborah debbie debra
donald don donny
dorothy dot dolly
edward ed eddie ted teddy
edwin ed
eleanor ellie nell
elizabeth elisabeth liz beth betty bess lizzie eliza
ernest ernie
eugene gene
florence flo
francis frank francesco francisco
franklin frank
frederick fred freddie frederic friedrich
george georgi georg jorge
gerald gerry jerry
gerard gerry
gregory greg
harold harry
henry harry hank heinrich enrique henri
hubert bert
isabel isabella isabelle
ivan vanya
jacob jake
jacqueline jackie
james jim jimmy jamie
janet jan
jeffrey geoffrey jeff geoff
jennifer jenny jen
jessica jess
john jack johnny jon johann juan
jonathan jon
joseph joe joey josef jose giuseppe iosif
joshua josh
judith judy
kenneth ken kenny
laurence lawrence larry
leonard len lenny
louis lou lewis luis
louise lou
margaret maggie meg peggy greta margarita
martin marty
mary maria marie molly polly
matthew matt
maurice mo
michael mike mick mickey mikhail michel miguel
mohammed muhammad mohammad mohamed muhammed mohamad
nathaniel nathan nat
nicholas nick nicolas nikolai nikolay
norman norm
oliver ollie
pamela pam
patricia pat patty tricia
patrick pat paddy
paul pavel pablo paolo
peter pete pyotr petr pieter pedro
philip phillip phil
raymond ray
rebecca becky
reginald reg
richard dick rick ricky richie
robert bob bobby rob robbie roberto
ronald ron ronnie
samuel sam sammy
sergei sergey serge
sidney sydney sid
solomon sol
stanley stan
stephen steven steve
stewart stuart
susan sue susie
terence terry
theodore ted teddy theo fyodor feodor
thomas tom tommy
timothy tim
valerie val
victor vic
victoria vicky
vincent vince
vladimir volodymyr
walter walt wally
wilhelm william bill billy will willie guillermo guillaume
winston winnie
woodrow woody
yuri yury iurii
zachary zach
"""

_PLACES = """
united kingdom|uk|great britain|britain
united states|united states of america|usa|us|america|u s|u s a
soviet union|ussr|u s s r
netherlands|the netherlands|holland
czech republic|czechia
ivory coast|cote divoire
burma|myanmar
ceylon|sri lanka
persia|iran
siam|thailand
zaire|democratic republic of the congo|democratic republic of congo|dr congo|drc
rhodesia|zimbabwe
abyssinia|ethiopia
swaziland|eswatini
macedonia|north macedonia
east timor|timor leste
cape verde|cabo verde
turkey|turkiye
prc|peoples republic of china|china
ireland|republic of ireland|eire
uae|united arab emirates
bombay|mumbai
madras|chennai
calcutta|kolkata
bangalore|bengaluru
peking|beijing
canton|guangzhou
saigon|ho chi minh city
rangoon|yangon
kiev|kyiv
constantinople|istanbul
leningrad|st petersburg|saint petersburg|petrograd
stalingrad|volgograd
danzig|gdansk
breslau|wroclaw
konigsberg|kaliningrad
edo|tokyo
new york|new york city|nyc|ny
los angeles|la
washington dc|washington d c|washington
mexico city|ciudad de mexico
mount everest|everest
english channel|la manche
european union|eu
united nations|un|u n
"""


def _groups(lines: str, dividing: str | None) -> dict[str, frozenset[str]]:
    """For each name the names that it is used for; itself is among them."""
    found: dict[str, frozenset[str]] = {}
    for line in filter(None, lines.splitlines()):
        group = frozenset(line.split(dividing))
        for name in group:
            found[name] = found.get(name, frozenset()) | group
    return found


FIRST_NAMES = _groups(_FIRST_NAMES, None)
"""Words."""
PLACES = _groups(_PLACES, "|")
"""One or several words, with spaces between."""
