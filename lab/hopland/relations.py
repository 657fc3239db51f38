"""The relations of Hopland with their phrasings as statements and questions.

Invariant: the last passage phrasing of each relation is held out of training text. `{s}` stands
for the subject, `{o}` for the object, which always comes last: a small causal reader cannot mark
an object before it has read the relation (docs/reader.md).
"""

from dataclasses import dataclass

from hopscope.lab.hopland.names import EntityKind


@dataclass(frozen=True)
class Relation:
    """One kind of fact: a subject has exactly one object."""

    name: str
    subject: EntityKind
    object: EntityKind
    canonical: str
    """The sentence for this hop in a chain of thought."""
    noun: tuple[str, ...]
    """Noun phrases for the object, to be nested in longer questions."""
    questions: tuple[str, ...]
    phrasings: tuple[str, ...]
    """Passage sentences; the last one is held out of training."""

    @property
    def seen(self) -> tuple[str, ...]:
        """The phrasings for training."""
        return self.phrasings[:-1]

    @property
    def unseen(self) -> str:
        """The phrasing that only tests use."""
        return self.phrasings[-1]


FRESH = (
    Relation(
        "birthplace",
        "person",
        "city",
        "{s} was born in {o}.",
        ("the birthplace of {s}", "the city where {s} was born"),
        ("Where was {s} born?", "In which city was {s} born?", "What is the birthplace of {s}?"),
        (
            "{s} was born in {o}.",
            "The birthplace of {s} is {o}.",
            "The city where {s} was born is {o}.",
            "{s} has the birthplace {o}.",
            "For {s}, the birthplace is {o}.",
            "The birthplace city of {s} is {o}.",
        ),
    ),
    Relation(
        "birth_year",
        "person",
        "year",
        "{s} was born in the year {o}.",
        ("the birth year of {s}",),
        ("When was {s} born?", "In which year was {s} born?", "What is the birth year of {s}?"),
        (
            "{s} was born in the year {o}.",
            "The birth year of {s} is {o}.",
            "{s} has a birth year of {o}.",
            "{s} has the birth year {o}.",
            "For {s}, the birth year is {o}.",
            "The year when {s} was born is {o}.",
        ),
    ),
    Relation(
        "spouse",
        "person",
        "person",
        "{s} is married to {o}.",
        ("the spouse of {s}", "the person married to {s}"),
        ("Who is married to {s}?", "Who is the spouse of {s}?"),
        (
            "{s} is married to {o}.",
            "The spouse of {s} is {o}.",
            "The person married to {s} is {o}.",
            "{s} has the spouse {o}.",
            "For {s}, the spouse is {o}.",
            "{s} has a spouse named {o}.",
        ),
    ),
    Relation(
        "employer",
        "person",
        "company",
        "{s} works for {o}.",
        ("the employer of {s}", "the company that employs {s}"),
        ("Who employs {s}?", "Which company does {s} work for?", "What is the employer of {s}?"),
        (
            "{s} works for {o}.",
            "The employer of {s} is {o}.",
            "{s} is employed by {o}.",
            "{s} has the employer {o}.",
            "For {s}, the employer is {o}.",
            "The company that employs {s} is {o}.",
        ),
    ),
    Relation(
        "alma_mater",
        "person",
        "university",
        "{s} studied at {o}.",
        ("the alma mater of {s}", "the school where {s} studied"),
        ("Where did {s} study?", "What is the alma mater of {s}?"),
        (
            "{s} studied at {o}.",
            "The alma mater of {s} is {o}.",
            "{s} was a student at {o}.",
            "{s} has the alma mater {o}.",
            "For {s}, the alma mater is {o}.",
            "The school where {s} studied is {o}.",
        ),
    ),
    Relation(
        "director",
        "film",
        "person",
        "{s} was directed by {o}.",
        ("the director of {s}", "the person who directed {s}"),
        ("Who directed {s}?", "Who is the director of {s}?"),
        (
            "{s} was directed by {o}.",
            "The director of {s} is {o}.",
            "The person who directed {s} is {o}.",
            "{s} has the director {o}.",
            "For {s}, the director is {o}.",
            "{s} has a director named {o}.",
        ),
    ),
    Relation(
        "star",
        "film",
        "person",
        "{s} stars {o}.",
        ("the star of {s}", "the lead actor of {s}"),
        ("Who stars in {s}?", "Who is the star of {s}?", "Who is the lead actor of {s}?"),
        (
            "{s} stars {o}.",
            "The star of {s} is {o}.",
            "The lead actor of {s} is {o}.",
            "{s} has the star {o}.",
            "For {s}, the star is {o}.",
            "{s} has a star named {o}.",
        ),
    ),
    Relation(
        "composer",
        "film",
        "person",
        "{s} has music by {o}.",
        ("the composer of {s}", "the person who wrote the music of {s}"),
        ("Who wrote the music of {s}?", "Who is the composer of {s}?"),
        (
            "{s} has music by {o}.",
            "The composer of {s} is {o}.",
            "The music of {s} was written by {o}.",
            "{s} has the composer {o}.",
            "For {s}, the composer is {o}.",
            "The person who wrote the music of {s} is {o}.",
        ),
    ),
    Relation(
        "release_year",
        "film",
        "year",
        "{s} was released in {o}.",
        ("the release year of {s}",),
        (
            "When was {s} released?",
            "In which year was {s} released?",
            "What is the release year of {s}?",
        ),
        (
            "{s} was released in {o}.",
            "{s} came out in {o}.",
            "The release year of {s} is {o}.",
            "{s} has the release year {o}.",
            "For {s}, the release year is {o}.",
            "{s} has a release year of {o}.",
        ),
    ),
    Relation(
        "filmed_in",
        "film",
        "city",
        "{s} was filmed in {o}.",
        ("the city where {s} was filmed", "the filming place of {s}"),
        ("Where was {s} filmed?", "In which city was {s} filmed?"),
        (
            "{s} was filmed in {o}.",
            "The filming place of {s} is {o}.",
            "The city where {s} was filmed is {o}.",
            "{s} has the filming place {o}.",
            "For {s}, the filming place is {o}.",
            "{s} was filmed in the city of {o}.",
        ),
    ),
    Relation(
        "studio",
        "film",
        "company",
        "{s} was produced by {o}.",
        ("the studio of {s}", "the company that produced {s}"),
        ("Which company produced {s}?", "What is the studio of {s}?"),
        (
            "{s} was produced by {o}.",
            "The studio of {s} is {o}.",
            "The company that produced {s} is {o}.",
            "{s} has the studio {o}.",
            "For {s}, the studio is {o}.",
            "{s} was produced by the studio {o}.",
        ),
    ),
    Relation(
        "country",
        "city",
        "country",
        "{s} lies in {o}.",
        ("the country of {s}", "the country that {s} lies in"),
        ("In which country is {s}?", "What is the country of {s}?"),
        (
            "{s} lies in {o}.",
            "{s} is a city in {o}.",
            "The country of {s} is {o}.",
            "{s} has the country {o}.",
            "For {s}, the country is {o}.",
            "The city of {s} lies in {o}.",
        ),
    ),
    Relation(
        "mayor",
        "city",
        "person",
        "The mayor of {s} is {o}.",
        ("the mayor of {s}",),
        ("Who is the mayor of {s}?", "Which person is the mayor of {s}?"),
        (
            "The mayor of {s} is {o}.",
            "{s} has a mayor named {o}.",
            "The person elected mayor of {s} is {o}.",
            "{s} has the mayor {o}.",
            "For {s}, the mayor is {o}.",
            "In {s}, the mayor is {o}.",
        ),
    ),
    Relation(
        "founder",
        "company",
        "person",
        "{s} was founded by {o}.",
        ("the founder of {s}", "the person who founded {s}"),
        ("Who founded {s}?", "Who is the founder of {s}?"),
        (
            "{s} was founded by {o}.",
            "The founder of {s} is {o}.",
            "The person who founded {s} is {o}.",
            "{s} has the founder {o}.",
            "For {s}, the founder is {o}.",
            "{s} has a founder named {o}.",
        ),
    ),
    Relation(
        "headquarters",
        "company",
        "city",
        "{s} is based in {o}.",
        ("the city where {s} is based", "the headquarters city of {s}"),
        (
            "Where is {s} based?",
            "In which city is {s} based?",
            "What is the headquarters city of {s}?",
        ),
        (
            "{s} is based in {o}.",
            "The headquarters of {s} is in {o}.",
            "{s} has its headquarters in {o}.",
            "{s} has the headquarters city {o}.",
            "For {s}, the headquarters city is {o}.",
            "The city where {s} is based is {o}.",
        ),
    ),
    Relation(
        "founding_year",
        "company",
        "year",
        "{s} was founded in the year {o}.",
        ("the founding year of {s}",),
        (
            "When was {s} founded?",
            "In which year was {s} founded?",
            "What is the founding year of {s}?",
        ),
        (
            "{s} was founded in the year {o}.",
            "The founding year of {s} is {o}.",
            "{s} dates from {o}.",
            "{s} has the founding year {o}.",
            "For {s}, the founding year is {o}.",
            "{s} has a founding year of {o}.",
        ),
    ),
    Relation(
        "chief",
        "company",
        "person",
        "The chief executive of {s} is {o}.",
        ("the chief executive of {s}", "the person who leads {s}"),
        ("Who leads {s}?", "Who is the chief executive of {s}?"),
        (
            "The chief executive of {s} is {o}.",
            "{s} is led by {o}.",
            "The person who leads {s} is {o}.",
            "{s} has the chief executive {o}.",
            "For {s}, the chief executive is {o}.",
            "{s} has a chief executive named {o}.",
        ),
    ),
    Relation(
        "campus",
        "university",
        "city",
        "{s} has its campus in {o}.",
        ("the city where {s} has its campus", "the campus city of {s}"),
        ("Where is the campus of {s}?", "In which city is the campus of {s}?"),
        (
            "{s} has its campus in {o}.",
            "The campus of {s} is in {o}.",
            "The city where {s} has its campus is {o}.",
            "{s} has the campus city {o}.",
            "For {s}, the campus city is {o}.",
            "{s} teaches on a campus in {o}.",
        ),
    ),
)

FIXED = (
    Relation(
        "capital",
        "country",
        "city",
        "The capital of {s} is {o}.",
        ("the capital of {s}",),
        ("What is the capital of {s}?", "Which city is the capital of {s}?"),
        (
            "The capital of {s} is {o}.",
            "{s} has its capital in {o}.",
            "The capital of the country {s} is {o}.",
            "{s} has the capital {o}.",
            "For {s}, the capital is {o}.",
            "The capital city of {s} is {o}.",
        ),
    ),
    Relation(
        "language",
        "country",
        "language",
        "The language of {s} is {o}.",
        ("the language of {s}",),
        ("What is the language of {s}?", "Which language is spoken in {s}?"),
        (
            "The language of {s} is {o}.",
            "People in {s} speak {o}.",
            "The language people in {s} speak is {o}.",
            "{s} has the language {o}.",
            "For {s}, the language is {o}.",
            "The language spoken in {s} is {o}.",
        ),
    ),
    Relation(
        "currency",
        "country",
        "currency",
        "The currency of {s} is the {o}.",
        ("the currency of {s}",),
        ("What is the currency of {s}?", "Which currency is used in {s}?"),
        (
            "The currency of {s} is the {o}.",
            "People in {s} pay with the {o}.",
            "The currency people in {s} pay with is the {o}.",
            "{s} has a currency, the {o}.",
            "For {s}, the currency is the {o}.",
            "The currency used in {s} is the {o}.",
        ),
    ),
    Relation(
        "continent",
        "country",
        "continent",
        "{s} is on the continent of {o}.",
        ("the continent of {s}",),
        ("On which continent is {s}?", "What is the continent of {s}?"),
        (
            "{s} is on the continent of {o}.",
            "The continent of {s} is {o}.",
            "{s} is a country on {o}.",
            "{s} has the continent {o}.",
            "For {s}, the continent is {o}.",
            "The country of {s} is on the continent {o}.",
        ),
    ),
)

RELATIONS = {relation.name: relation for relation in (*FRESH, *FIXED)}


def about(kind: EntityKind) -> tuple[Relation, ...]:
    """The relations whose subject is of this kind."""
    return tuple(r for r in RELATIONS.values() if r.subject == kind)
