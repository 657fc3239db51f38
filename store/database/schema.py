"""The tables and their invariants:

- A run is its row in `runs` and all rows that carry its `run` number; deleting the row deletes
  them. Numbers are internal; `runs.id` is the identity users see.
- Passages, texts, prompts, provenances, coalitions and questions are stored once under a hash,
  shared by all rows that refer to them and never changed.
- A question has one item in an experiment for each arm, and an item at most one run.
- `position` and `rank` preserve the order and count from 0.
- Only invariants are CHECKed. The records check open sets of names (kinds, statuses, rules).

A new column is also a revision: a file in `store/migrations/versions`, named in `HEAD` of
`store.database.migrate`.
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
    func,
)

from hopscope.store.database.columns import AnyText, Deflated, Instant, Packed, Seed

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Number = BigInteger().with_variant(Integer, "sqlite")
"""Row numbers; on SQLite only an INTEGER column can be the rowid."""


def _usage() -> list[Column[int]]:
    names = ("input_tokens", "output_tokens", "calls")
    later = ("thinking_tokens", "cached_tokens", "uncounted")  # 0 in rows older than m009 and m010
    return [
        *(Column(name, BigInteger, nullable=False) for name in names),
        *(Column(name, BigInteger, nullable=False, server_default="0") for name in later),
    ]


WHOLE_RUN = -1
"""`credits.step` of a credit of the whole run, so that the key has no NULL."""

WHOLE_STEP = ""
"""`credits.passage` of a credit of a whole step, so that the key has no NULL."""

ALL_PASSAGES = -2
"""`games.step` of a game among all passages of a run; among steps it is WHOLE_RUN."""

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
    Column("error_type", AnyText),  # NULL, as error_message, if the run ended without an error
    Column("error_message", AnyText),
    Column("started", Instant, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("trace_id", AnyText, nullable=False),
    Column("span_id", AnyText, nullable=False),
    Column("hash", Text),  # the seal of the run's rows; NULL in rows older than m011
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

IS_RETRIEVAL = steps.c.query.is_not(None)
"""`Step.retrieved`, in SQL."""
RETRIEVALS = func.count(steps.c.query)
"""The number of a group's retrievals."""

# Decisions before retrievals, in the step that then retrieved or did nothing.
decisions = Table(
    "decisions",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),  # steps.position
    Column("policy", AnyText, nullable=False),
    Column("retrieve", Boolean, nullable=False),  # or stop
    Column("reason", AnyText, nullable=False),
    Column("retrieval", Integer, nullable=False),  # number of retrievals before it
    Column("stage", AnyText),  # the last whose signals were used
    Column("signals", JSON, nullable=False),  # numbers by name
    Column("predicted_gain", Double, key="gain"),
    Column("low", Double),  # 95 % interval of the gain
    Column("high", Double),
    Column("predicted_cost", Double, key="cost"),  # tokens
    Column("price", Double),  # of a token, in utility
    *_usage(),  # of the decision, included in the step's
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

# The id of a passage in an index: several indexes may hold the same content under several ids.
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

# Ranks of passages in a step: one row for each place in each of the step's lists.
placements = Table(
    "placements",
    metadata,
    Column("run", Number, primary_key=True),
    Column("step", Integer, primary_key=True),  # steps.position
    Column("role", Text, primary_key=True),  # ranked, new, shown, evidence or dangling
    Column("rank", Integer, primary_key=True),
    Column("listing", Number, ForeignKey("listings.number")),
    Column("key", AnyText),  # instead of listing: the key of a passage that the run does not hold
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
    Column("thought", AnyText),  # given with the request
    Column("keeps", Text),
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
    Column("thought", AnyText),  # NULL, as thought_end, if there was none
    Column("thought_tokens", Integer),
    Column("thought_end", Text),
    Column("refused", JSON(none_as_null=True)),  # names of options; NULL if none
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
    Column("certain", Boolean, nullable=False),  # the interval is certain, not statistical
    Column("dropped", JSON(none_as_null=True)),  # Measurement.dropped
    Column("hash", Text),  # of the row; NULL in rows older than m011
    CheckConstraint("(value IS NULL) <> (reason IS NULL)", name="measured"),
    sqlite_with_rowid=False,
)

# The totals of the appraisal of a run that lists show; they follow from its credits and appraisals.
totals = Table(
    "totals",
    metadata,
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    Column("meter", AnyText, primary_key=True),
    Column("value", Double),
    Index("ix_totals_value", "meter", "value", "run"),
    sqlite_with_rowid=False,
)

# Time and cost of measuring credits. Credits older than m002 have none.
appraisals = Table(
    "appraisals",
    metadata,
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), primary_key=True),
    Column("provenance", Number, ForeignKey("provenances.number"), primary_key=True),
    Column("measured", Instant, primary_key=True),
    *_usage(),
    Column("seconds", Double, nullable=False),
    Column("pairs", JSON(none_as_null=True)),  # Appraisal.pairs; NULL in rows older than m007
    Column("hash", Text),  # of the row; NULL in rows older than m011
    sqlite_with_rowid=False,
)

# A set of players, stored once for all games and runs.
coalitions = Table(
    "coalitions",
    metadata,
    Column("number", Number, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("members", Packed),  # ascending; NULL for the empty coalition
    UniqueConstraint("hash"),
)

# GameValues: the players of a run, and one meter's values of their coalitions.
games = Table(
    "games",
    metadata,
    Column("number", Number, primary_key=True),
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), nullable=False),
    Column("provenance", Number, ForeignKey("provenances.number"), nullable=False),
    Column("meter", AnyText, nullable=False),
    Column("step", Integer, nullable=False),  # Step.index, WHOLE_RUN, or ALL_PASSAGES
    Column("keys", JSON(none_as_null=True)),  # Passage.key of each member; NULL if steps play
    Column("members", Packed),
    Column("players", Packed),
    Column("remark", AnyText, nullable=False),
    Column("comparable", Boolean, nullable=False),
    Column("measured", Integer, nullable=False),  # coalitions, also those not stored
    Column("hash", Text),  # the seal of this row and its coalition_values
    Column("answers", Deflated),  # by evidence; NULL if none, and in rows older than m016
    UniqueConstraint("run", "provenance", "meter", "step"),
)

coalition_values = Table(
    "coalition_values",
    metadata,
    Column("game", Number, ForeignKey("games.number", ondelete="CASCADE"), primary_key=True),
    Column("coalition", Number, ForeignKey("coalitions.number"), primary_key=True),
    Column("evidence", Text),  # hash; NULL if there was none to measure
    Column("value", Double),
    Column("reason", AnyText),  # why value is NULL
    Column("n", Integer, nullable=False),
    Column("seed", Seed),
    Column("estimator", Number, ForeignKey("texts.number"), nullable=False),
    Column("low", Double),  # 95 % interval
    Column("high", Double),
    Column("certain", Boolean, nullable=False),
    Column("dropped", JSON(none_as_null=True)),  # Measurement.dropped
    Column("unseen", JSON(none_as_null=True)),  # CoalitionValue.unseen; NULL if none
    CheckConstraint("(value IS NULL) <> (reason IS NULL)", name="measured"),
    sqlite_with_rowid=False,
)

experiments = Table(
    "experiments",
    metadata,
    Column("number", Number, primary_key=True),
    Column("name", AnyText, nullable=False),
    Column("fingerprint", Text, nullable=False),  # Experiment.fingerprint
    Column("settings", JSON, nullable=False),  # resolved: enough to repeat the experiment
    Column("reader", AnyText, nullable=False),  # with revision
    Column("retriever", AnyText, nullable=False),  # with the fingerprint of the corpus
    Column("entailment", AnyText, nullable=False),
    Column("seed", Seed, nullable=False),
    Column("created", Instant, nullable=False),
    UniqueConstraint("name"),
)

# A workflow with its settings, one of the systems that an experiment compares.
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

# A worker session: the work of one command on an experiment, until it ends or is killed.
sittings = Table(
    "sittings",
    metadata,
    Column("number", Number, primary_key=True),
    Column(
        "experiment", Number, ForeignKey("experiments.number", ondelete="CASCADE"), nullable=False
    ),
    Column("owner", AnyText, nullable=False),  # the process; others check if it lives
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
    Column("hash", Text, nullable=False),  # DatasetEntry.hash
    Column("id", AnyText, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("answers", JSON, nullable=False),
    Column("kind", AnyText, nullable=False),
    Column("hops", Integer),
    Column("supporting", JSON, nullable=False),
    UniqueConstraint("hash"),
)

# A question for an arm: exactly one row in an experiment.
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
    Column("sitting", Number, ForeignKey("sittings.number")),  # that claimed or completed it
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


def _cache_table(name: str) -> Table:
    """A table of answers by a hash of all that they depend on; only the newest are kept."""
    return Table(
        name,
        metadata,
        Column("number", Number, primary_key=True),  # in order of insertion
        Column("hash", Text, nullable=False),
        Column("answer", AnyText, nullable=False),  # JSON
        UniqueConstraint("hash"),
    )


answers = _cache_table("answers")  # of readers
entailments = _cache_table("entailments")  # of entailment models, on pairs of texts


# What was sent to a service of traces. A second push sends only what is new, changed or failed.
pushes = Table(
    "pushes",
    metadata,
    Column("number", Number, primary_key=True),
    Column("service", Text, nullable=False),  # its name
    Column("target", Text, nullable=False),  # hash of its name, address and project
    Column("kind", Text, nullable=False),  # of what was sent: trace, note, experiment, result, …
    Column("key", Text, nullable=False),  # hash of what it is
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE")),
    Column("experiment", Number, ForeignKey("experiments.number", ondelete="CASCADE")),
    Column("content", Text, nullable=False),  # hash of what it says
    Column("remote", AnyText, nullable=False),  # its id there; empty for none
    Column("pushed", Instant, nullable=False),
    Column("reason", AnyText),  # why it failed; NULL if it did not
    UniqueConstraint("target", "kind", "key"),
    Index("ix_pushes_run", "run"),
    Index("ix_pushes_experiment", "experiment"),
)

# What people said about runs: here, or in a service.
labels = Table(
    "labels",
    metadata,
    Column("number", Number, primary_key=True),
    Column("run", Number, ForeignKey("runs.number", ondelete="CASCADE"), nullable=False),
    Column("target", Text, nullable=False),
    Column("step", Integer, nullable=False),  # Step.index, or WHOLE_RUN
    Column("passage", AnyText, nullable=False),  # Passage.key, or WHOLE_STEP
    Column("name", AnyText, nullable=False),
    Column("score", Double),
    Column("label", AnyText),
    Column("note", AnyText),
    Column("author", AnyText, nullable=False),  # empty if unknown
    Column("source", AnyText, nullable=False),  # the service, or view
    Column("remote", AnyText, nullable=False),  # its id there; empty for none
    Column("made", Instant, nullable=False),
    UniqueConstraint("run", "target", "step", "passage", "name", "author", "source"),
    CheckConstraint("target IN ('run', 'answer', 'step', 'passage')", name="target"),
    CheckConstraint("score IS NOT NULL OR label IS NOT NULL OR note IS NOT NULL", name="content"),
)
