"""The tables. What they must keep true:

- A run is its row in `runs` and all rows that carry its `run` number; deleting the row deletes
  them. Numbers are internal; `runs.id` is the identity users see.
- Passages, texts, prompts, provenances and questions are kept once, found by hash, shared by all
  that mention them and never changed.
- A question has one item in an experiment for each arm, and an item at most one run.
- Order is kept: `position` and `rank` count from 0.
- Only invariants are CHECKed. Names that grow (kinds, statuses, rules) are left to the records.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from hopscope.store.columns import AnyText, Instant, Packed, Seed

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Number = BigInteger().with_variant(Integer, "sqlite")
"""Row numbers; on SQLite only INTEGER makes a column the row's own key."""


def _usage() -> list[Column[int]]:
    names = ("input_tokens", "output_tokens", "calls")
    later = ("thinking_tokens", "cached_tokens", "uncounted")  # of before m009 and m010: 0
    return [
        *(Column(name, BigInteger, nullable=False) for name in names),
        *(Column(name, BigInteger, nullable=False, server_default="0") for name in later),
    ]


WHOLE_RUN = -1
"""`credits.step` of a credit that goes to the run as a whole, so that the key has no NULL."""

WHOLE_STEP = ""
"""`credits.passage` of a credit that goes to no single passage, likewise."""

runs = Table(
    "runs",
    metadata,
    Column("number", Number, primary_key=True),
    Column("id", Text().with_variant(Text(collation="C"), "postgresql"), nullable=False),
    Column("question", AnyText, nullable=False),
    Column("answers", JSON, nullable=False),  # gold aliases, a list of texts
    Column("question_id", AnyText, nullable=False),
    Column("workflow", AnyText, nullable=False),
    Column("options", JSON, nullable=False),
    Column("reader", AnyText, nullable=False),
    Column("retriever", AnyText, nullable=False),
    Column("seed", Seed, nullable=False),
    Column("answer", AnyText),
    Column("status", Text, nullable=False),
    Column("stop_reason", Text),
    Column("error_type", AnyText),  # NULL together with error_message: the run ended regularly
    Column("error_message", AnyText),
    Column("started", Instant, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("trace_id", AnyText, nullable=False),
    Column("span_id", AnyText, nullable=False),
    Column("hash", Text),  # the seal of the run's rows; NULL of before m011
    UniqueConstraint("id"),
    CheckConstraint("(error_type IS NULL) = (error_message IS NULL)", name="error"),
    Index("ix_runs_started", "started", "number"),
)

steps = Table(
    "steps",
    metadata,
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("index", Integer, nullable=False),  # as recorded; equals position in a chain
    Column("name", AnyText, nullable=False),
    Column("kind", Text, nullable=False),
    Column("query", AnyText),
    Column("output", AnyText),
    Column("parse_ok", Boolean),
    Column("stop_reason", Text),
    *_usage(),
    Column("started", Instant, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("span_id", AnyText, nullable=False),
)

# What was decided before a retrieval, in the step that then made it or did nothing.
decisions = Table(
    "decisions",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),  # steps.position
    Column("policy", AnyText, nullable=False),
    Column("retrieve", Boolean, nullable=False),  # or stop
    Column("reason", AnyText, nullable=False),
    Column("retrieval", Integer, nullable=False),  # retrievals before
    Column("stage", AnyText),  # the last whose signals were looked at
    Column("signals", JSON, nullable=False),  # numbers by name
    Column("predicted_gain", Double, key="gain"),
    Column("low", Double),  # 95 % interval of the gain
    Column("high", Double),
    Column("predicted_cost", Double, key="cost"),  # tokens
    Column("price", Double),  # of a token, in utility
    *_usage(),  # what deciding took, part of the step's
    ForeignKeyConstraint(["run", "step"], ["steps.run", "steps.position"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)

passages = Table(
    "passages",
    metadata,
    Column("number", Number, primary_key=True),
    Column("content_hash", Text, nullable=False),  # Passage.content_hash
    Column("title", AnyText, nullable=False),
    Column("text", AnyText, nullable=False),
    UniqueConstraint("content_hash"),
)

# What an index calls a passage: the same content can stand in several under several ids.
listings = Table(
    "listings",
    metadata,
    Column("number", Number, primary_key=True),
    Column("hash", Text, nullable=False),  # of content_hash, id and source
    Column("passage", Number, ForeignKey("passages.number"), nullable=False),
    Column("id", AnyText, nullable=False),
    Column("source", AnyText, nullable=False),
    UniqueConstraint("hash"),
    Index("ix_listings_passage", "passage"),
)

# Where a passage stood in a step: one row for each place in each of the step's lists.
placements = Table(
    "placements",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),  # steps.position
    Column("role", Text, primary_key=True),  # ranked, new, shown, evidence or dangling
    Column("rank", Integer, primary_key=True),
    Column("listing", Number, ForeignKey("listings.number")),
    Column("key", AnyText),  # in place of listing: a key of no passage that the run holds
    Column("score", Double),  # the retriever's, of ranked passages only
    ForeignKeyConstraint(["run", "step"], ["steps.run", "steps.position"], ondelete="CASCADE"),
    CheckConstraint("(listing IS NULL) <> (key IS NULL)", name="passage"),
    CheckConstraint("(role = 'ranked') = (score IS NOT NULL)", name="score"),
    CheckConstraint("role IN ('ranked', 'new', 'shown', 'evidence', 'dangling')", name="role"),
    sqlite_with_rowid=False,
)

texts = Table(
    "texts",
    metadata,
    Column("number", Number, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("text", AnyText, nullable=False),
    UniqueConstraint("hash"),
)

prompts = Table(
    "prompts",
    metadata,
    Column("number", Number, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("prefix", AnyText, nullable=False),
    Column("shown", JSON, nullable=False),  # keys of the passages in the messages, in order
    UniqueConstraint("hash"),
)

messages = Table(
    "messages",
    metadata,
    Column("prompt", Number, ForeignKey("prompts.number"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("role", Text, nullable=False),
    Column("text", Number, ForeignKey("texts.number"), nullable=False),
    sqlite_with_rowid=False,
)

exchanges = Table(
    "exchanges",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("prompt", Number, ForeignKey("prompts.number"), nullable=False),
    Column("n", Integer, nullable=False),
    Column("temperature", Double, nullable=False),
    Column("max_tokens", Integer, nullable=False),
    Column("stop", JSON, nullable=False),
    Column("seed", Seed, nullable=False),
    Column("thought", AnyText),  # that was given
    Column("seconds", Double, nullable=False),
    Column("span_id", AnyText, nullable=False),
    ForeignKeyConstraint(["run", "step"], ["steps.run", "steps.position"], ondelete="CASCADE"),
)

generations = Table(
    "generations",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("exchange", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("text", AnyText, nullable=False),
    Column("tokens", JSON, nullable=False),
    Column("token_ids", Packed),
    Column("logprobs", Packed),  # nats
    Column("entropies", Packed),  # nats
    Column("end_logprob", Double),
    Column("finish_reason", Text, nullable=False),
    *_usage(),
    Column("approx", Boolean, nullable=False),
    Column("thought", AnyText),  # NULL together with thought_end: there was none
    Column("thought_tokens", Integer),
    Column("thought_end", Text),
    Column("refused", JSON(none_as_null=True)),  # names of options; NULL where there are none
    ForeignKeyConstraint(
        ["run", "step", "exchange"],
        ["exchanges.run", "exchanges.step", "exchanges.position"],
        ondelete="CASCADE",
    ),
)

provenances = Table(
    "provenances",
    metadata,
    Column("number", Number, primary_key=True),
    Column("settings_hash", Text, nullable=False),  # Provenance.settings_hash
    Column("reader", AnyText, nullable=False),
    Column("entailment", AnyText),
    Column("seed", Seed, nullable=False),
    Column("settings", JSON, nullable=False),
    UniqueConstraint("settings_hash"),
)

credits = Table(
    "credits",
    metadata,
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True),  # Step.index, or WHOLE_RUN
    Column("passage", AnyText, primary_key=True),  # Passage.key, or WHOLE_STEP
    Column("rule", AnyText, primary_key=True),
    Column("meter", AnyText, primary_key=True),
    Column("provenance", Number, ForeignKey("provenances.number"), primary_key=True),
    Column("value", Double),
    Column("reason", AnyText),  # why value is NULL
    Column("n", Integer, nullable=False),
    Column("seed", Seed),
    Column("estimator", AnyText, nullable=False),
    Column("low", Double),  # 95 % interval
    Column("high", Double),
    Column("certain", Boolean, nullable=False),  # the interval holds always
    Column("dropped", JSON(none_as_null=True)),  # Measurement.dropped
    Column("hash", Text),  # of the row; NULL of before m011
    CheckConstraint("(value IS NULL) <> (reason IS NULL)", name="measured"),
    sqlite_with_rowid=False,
)

# When credits were measured and what that cost. Credits of databases of before m002 have none.
appraisals = Table(
    "appraisals",
    metadata,
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    Column("provenance", Number, ForeignKey("provenances.number"), primary_key=True),
    Column("measured", Instant, primary_key=True),
    *_usage(),
    Column("seconds", Double, nullable=False),
    Column("pairs", JSON(none_as_null=True)),  # Appraisal.pairs; NULL of before m007
    Column("hash", Text),  # of the row; NULL of before m011
    sqlite_with_rowid=False,
)

experiments = Table(
    "experiments",
    metadata,
    Column("number", Number, primary_key=True),
    Column("name", AnyText, nullable=False),
    Column("fingerprint", Text, nullable=False),  # Experiment.fingerprint
    Column("settings", JSON, nullable=False),  # resolved: enough to do it again
    Column("reader", AnyText, nullable=False),  # with revision
    Column("retriever", AnyText, nullable=False),  # with the fingerprint of the corpus
    Column("entailment", AnyText, nullable=False),
    Column("seed", Seed, nullable=False),
    Column("created", Instant, nullable=False),
    UniqueConstraint("name"),
)

# A workflow with its settings, as one experiment compares it with others.
arms = Table(
    "arms",
    metadata,
    Column(
        "experiment", Number, ForeignKey("experiments.number", ondelete="CASCADE"), primary_key=True
    ),
    Column("position", Integer, primary_key=True),
    Column("label", AnyText, nullable=False),
    Column("workflow", AnyText, nullable=False),
    Column("settings", JSON, nullable=False),
    UniqueConstraint("experiment", "label"),
)

# One go at an experiment: a command from its beginning to its end, or to where it was killed.
sittings = Table(
    "sittings",
    metadata,
    Column("number", Number, primary_key=True),
    Column(
        "experiment", Number, ForeignKey("experiments.number", ondelete="CASCADE"), nullable=False
    ),
    Column("owner", AnyText, nullable=False),  # the process, so that others can see if it lives
    Column("environment", JSON, nullable=False),  # versions and hardware
    Column("started", Instant, nullable=False),
    Column("seen", Instant, nullable=False),  # the last sign of life
    Column("ended", Instant),
    Index("ix_sittings_experiment", "experiment"),
)

questions = Table(
    "questions",
    metadata,
    Column("number", Number, primary_key=True),
    Column("hash", Text, nullable=False),  # Entry.hash
    Column("id", AnyText, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("answers", JSON, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("hops", Integer),
    Column("supporting", JSON, nullable=False),
    UniqueConstraint("hash"),
)

# A question by an arm: the one row that it has in an experiment, whatever happens.
items = Table(
    "items",
    metadata,
    Column(
        "experiment", Number, ForeignKey("experiments.number", ondelete="CASCADE"), primary_key=True
    ),
    Column("question", Number, ForeignKey("questions.number"), primary_key=True),
    Column("arm", Integer, primary_key=True),
    Column("position", Integer, nullable=False),  # in the order of the plan
    Column("status", Text, nullable=False),
    Column("sitting", Number, ForeignKey("sittings.number")),  # that has claimed or done it
    Column("attempts", Integer, nullable=False),
    Column("run", Number, ForeignKey("runs.number")),
    Column("error_type", AnyText),
    Column("error_message", AnyText),
    ForeignKeyConstraint(
        ["experiment", "arm"], ["arms.experiment", "arms.position"], ondelete="CASCADE"
    ),
    UniqueConstraint("run"),
    CheckConstraint("(error_type IS NULL) = (error_message IS NULL)", name="error"),
    CheckConstraint("status <> 'ok' OR run IS NOT NULL", name="done"),
    CheckConstraint("(status = 'failed') = (error_type IS NOT NULL)", name="failed"),
    Index("ix_items_status", "experiment", "status", "position"),
)


def _kept(name: str) -> Table:
    """Answers by a hash of all that they depend on; only the newest are kept."""
    return Table(
        name,
        metadata,
        Column("number", Number, primary_key=True),  # in the order they came
        Column("hash", Text, nullable=False),
        Column("answer", AnyText, nullable=False),  # JSON
        UniqueConstraint("hash"),
    )


answers = _kept("answers")  # what readers said
entailments = _kept("entailments")  # what entailment models said of pairs of texts
