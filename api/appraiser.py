"""The meters and rules that appraise a run, with their options: `seper.weight=uniform`,
`shapley.permutations=128`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import Parameter, signature
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.tracing.meters import DEFAULT_METERS, VARIANTS
from hopscope.tracing.reports.appraised import Appraised

if TYPE_CHECKING:
    from types import ModuleType

    from hopscope.runtime.ports import Entailment, Reader, UtilityMeter
    from hopscope.runtime.types import Appraisal, GameValues, GenerationRequest, Provenance, Run
    from hopscope.tracing.games.coalitions import Coalition, Game
    from hopscope.tracing.games.rule import CreditRule

RULES = ("trajectory", "leave_one_out", "shapley")


def split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options of a workflow, and those of meters and rules, which have a dot in their names."""
    own = {key: text for key, text in options.items() if "." not in key}
    return own, {key: text for key, text in options.items() if key not in own}


@dataclass(frozen=True)
class Measuring:
    """The settings of a measurement: names and texts, as the user gave them."""

    samples: int
    seed: int
    """The seed of meters and rules."""
    options: Mapping[str, str] = field(default_factory=dict)
    """`METER.KEY` or `RULE.KEY` to text. Options of `seper` also apply to `seper_hard`; options
    of a Python file use its name without `.py`."""
    meters: Sequence[str] = DEFAULT_METERS
    rules: Sequence[str] = RULES

    def parse(self) -> "Parsed":
        """
        Raises:
            UsageError: there is no such meter, rule or option, or its value is of another type.
        """
        from hopscope.runtime.errors import UsageError
        from hopscope.tracing import credit, meters

        parsed = Parsed({}, {})
        used: set[str] = set()
        for chosen, package, found in (
            (self.meters, meters, parsed.meters),
            (self.rules, credit, parsed.rules),
        ):
            for name in dict.fromkeys(chosen):
                found[name] = self._component(package, name, used)
        for key in self.options:
            if key not in used:
                names = ", ".join(dict.fromkeys([*parsed.meters, *parsed.rules]))
                raise UsageError(f"option {key!r} is of no meter or rule chosen: {names}")
        return parsed

    def _component(self, package: "ModuleType", name: str, used: set[str]) -> "Component":
        from hopscope.runtime import code_files, components
        from hopscope.runtime.errors import UsageError
        from hopscope.runtime.prompting import loading

        home, fixed = VARIANTS.get(name, (name, {}))
        build = components.load(package, home).build
        known = components.options(build)
        given = {"samples": str(self.samples), "seed": str(self.seed)}
        given = {key: text for key, text in given.items() if key in known}
        for owner in dict.fromkeys((code_files.stem(home), name)):
            for key, text in self.options.items():
                if key.startswith(f"{owner}."):
                    used.add(key)
                    given[key.removeprefix(f"{owner}.")] = text
        for variant, (of, changes) in VARIANTS.items():
            if of == home and changes.keys() & given.keys():
                raise UsageError(f"{home}.{min(changes)} goes with the meter's name: {variant}")
        resolved = components.parse_options(build, {**given, **fixed})
        if resolved.get("prompts"):
            resolved["prompts"] = loading.load(resolved["prompts"]).name
        return Component(build, resolved)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that differ from defaults, for the provenance."""
        from hopscope.runtime import code_files

        parsed = self.parse()
        components = {code_files.stem(n): c for n, c in (parsed.meters | parsed.rules).items()}
        found: dict[str, Any] = {"samples": self.samples}
        if hashes := code_files.hashes(" ".join([*self.meters, *self.rules])):
            found["code"] = ", ".join(f"{file}#{hash}" for file, hash in hashes.items())
        for key in sorted(self.options):
            owner, _, option = key.partition(".")
            built = components.get(owner)
            found[key] = built.options[option] if built else self.options[key]
        return found


def rules_of(names: Sequence[str], provenance: "Provenance") -> "list[CreditRule]":
    """The rules of these names, or Python files, with the options of a measurement.

    Raises:
        UsageError: there is no such rule.
    """
    from hopscope.runtime import code_files

    chosen = [code_files.named(name) for name in names]
    owners = set(map(code_files.stem, chosen))
    options = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in provenance.settings.items()
        if "." in key and key.partition(".")[0] in owners
    }
    measuring = Measuring(samples=1, seed=provenance.seed, options=options, meters=(), rules=chosen)
    return [rule.build(**rule.options) for rule in measuring.parse().rules.values()]


class Component(NamedTuple):
    """A meter or a rule to build."""

    build: Any
    options: dict[str, Any]


class Parsed(NamedTuple):
    meters: dict[str, Component]
    rules: dict[str, Component]


class Appraiser:
    """Meters and rules, built. The meters share their requests to models: both kinds of SePer use
    the same samples."""

    def __init__(self, reader: "Reader", entailment: "Entailment", measuring: Measuring) -> None:
        """
        Raises:
            UsageError: an option has an invalid value.
        """
        from hopscope.tracing.wrappers.cached import CachedEntailment, CachedReader
        from hopscope.tracing.wrappers.metered import MeteredEntailment, MeteredReader

        self._metered = MeteredReader(reader)
        self.reader = CachedReader(self._metered)
        """The reader with a cache; its cost is counted."""
        self._entailment = MeteredEntailment(CachedEntailment(entailment))
        self._measuring = measuring
        parsed = measuring.parse()
        self.meters: list[UtilityMeter] = [self._meter(m) for m in parsed.meters.values()]
        self.rules: list[CreditRule] = [r.build(**r.options) for r in parsed.rules.values()]

    def appraise(
        self,
        run: "Run",
        *,
        games: "Sequence[Game] | None" = None,
        settings: Mapping[str, Any] | None = None,
        stored: "Iterable[GameValues]" = (),
        calls: int | None = None,
    ) -> Appraised:
        """Credits of a run's steps, or of the players of `games`, described by `settings`, with at
        most `calls` replies for each meter.

        `stored` are values of the run; those with the same settings are not measured again. The
        cost covers every request to `reader` since the last call.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        from hopscope.tracing import appraisal
        from hopscope.tracing.what_if.recall import Recall

        provenance = self.provenance(settings)
        begun = perf_counter()
        recall = Recall(run, provenance, stored)
        known = {meter: recall.known(meter) for meter in recall.meters}
        shares = appraisal.share(
            run,
            self.meters,
            self.rules,
            provenance,
            games=games,
            known=known,
            calls=calls,
            ask=self._ask,
        )
        return Appraised(shares.credits, self._appraisal(run, provenance, begun), shares.games)

    def measure(
        self,
        run: "Run",
        game: "Game",
        coalitions: "Iterable[Coalition]",
        settings: Mapping[str, Any],
    ) -> Appraised:
        """The values of these coalitions, of all and of none, without credits.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        from hopscope.tracing.games.coalitions import EMPTY, Coalitions, EvidenceValues
        from hopscope.tracing.games.recorded import once, record

        provenance, begun, wanted = self.provenance(settings), perf_counter(), list(coalitions)
        games: list[GameValues] = []
        for meter in self.meters:
            played = Coalitions(game, EvidenceValues(run.question, meter))
            played.measure([EMPTY, played.full, *wanted])
            games.append(record(played, run.id, provenance))
        return Appraised([], self._appraisal(run, provenance, begun), once(games))

    def _ask(self, requests: "Sequence[GenerationRequest]") -> None:
        """Have the replies of all meters in the cache from one call. Where one prompt is too long,
        the others are asked for one by one, so that no meter asks for them again."""
        from hopscope.tracing.asking import asking

        asking.generate(self.reader, requests)

    def _appraisal(self, run: "Run", provenance: "Provenance", begun: float) -> "Appraisal":
        from hopscope.runtime.types import Appraisal

        return Appraisal(
            run_id=run.id,
            provenance=provenance,
            measured=datetime.now(UTC),
            usage=self._metered.take(),
            seconds=perf_counter() - begun,
            pairs=self._entailment.take(),
        )

    def provenance(self, settings: Mapping[str, Any] | None = None) -> "Provenance":
        """The settings that determine the credits of a run."""
        from hopscope.runtime.types import Provenance

        return Provenance(
            reader=self.reader.name,
            entailment=self._entailment.name,
            seed=self._measuring.seed,
            settings={
                **self._measuring.settings,
                **(settings or {"counterfactual": "empty", "mode": "frozen"}),
            },
        )

    def _meter(self, component: Component) -> "UtilityMeter":
        from hopscope.runtime.errors import UsageError

        ports = {"reader": self.reader, "entailment": self._entailment}
        positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        given: list[object] = []
        for parameter in signature(component.build).parameters.values():
            if parameter.kind in positional:
                if parameter.name not in ports:
                    raise UsageError(f"meters that need a {parameter.name} are not available here")
                given.append(ports[parameter.name])
        meter: UtilityMeter = component.build(*given, **component.options)
        return meter
