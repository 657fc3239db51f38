"""MLflow: runs as traces, scores as feedback, experiments as evaluation runs with a dataset.

MLflow takes the same trace twice as one, but would add the same feedback twice. So each feedback
carries the note's key in its metadata, and what a trace already holds is changed, not added. A
document has no feedback of its own there: its score stands on the retriever's span and tells the
document's place. Contract: MLflow 3.17.2, its REST API and `POST /v1/traces`.
"""

import gzip
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from hopscope.api.services._http import Connection, base, field, key
from hopscope.api.sharing.service import Found, Note, Plan, Result, ServiceError, Within
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import json_value, whole_number
from hopscope.runtime.types import digest
from hopscope.store.exporters.otlp import Trace, protobuf

TOKEN, USER, PASSWORD = (f"MLFLOW_TRACKING_{name}" for name in ("TOKEN", "USERNAME", "PASSWORD"))
KEY, CONTENT, PLACE = "hopscope.key", "hopscope.content", "hopscope.document.position"
PLAN = "hopscope.plan"
NOTES = "mlflow.notes"
"""The name of the feedback that holds a person's notes on a trace."""
SOURCES = {"CODE": "CODE", "LLM": "LLM_JUDGE", "HUMAN": "HUMAN"}
LONGEST = 6_000
"""Characters of a run's parameter."""
_API, _API3 = "/api/2.0/mlflow", "/api/3.0/mlflow"


def build(*, to: str | None = None, project: str | None = None) -> "MLflow":
    """
    Args:
        to: the server's address; by default MLFLOW_TRACKING_URI, else http://127.0.0.1:5000.
        project: MLflow's experiment that holds the traces; by default MLFLOW_EXPERIMENT_NAME,
            else hopscope.
    """
    example = "http://127.0.0.1:5000, where `mlflow server` runs"
    url = base(to, ("MLFLOW_TRACKING_URI",), "http://127.0.0.1:5000", example)
    token, user, password = key(TOKEN), key(USER), key(PASSWORD)
    connection = Connection(
        url,
        keys={TOKEN: token} if token or not user else {USER: user, PASSWORD: password},
        headers={"authorization": f"Bearer {token}"} if token else {},
        auth=(user, password) if user and not token else None,
    )
    return MLflow(connection, project or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "hopscope")


class MLflow:
    """A tracking server of MLflow."""

    name = "mlflow"
    batch = 100

    def __init__(self, connection: Connection, project: str) -> None:
        self._connection = connection
        self.project = project
        self._experiment = ""
        """The id of MLflow's experiment; empty until it was asked for."""
        self._feedback: dict[str, dict[str, tuple[str, str]]] = {}
        """By trace, what it holds of ours: by key the id and the hash of the content."""

    @property
    def address(self) -> str:
        return self._connection.url

    def requests(self, what: Trace | Plan | Result | Sequence[Note]) -> int:
        match what:
            case Trace():
                return 2
            case Plan():
                return 7
            case Result():
                return 1
            case _:
                return 1 + len(what)

    def check(self) -> None:
        if not self._experiment:
            self._experiment = self._find() or self._make()

    def send_trace(self, trace: Trace, within: Within | None) -> str:
        self.check()
        self._read([trace.id])
        self._connection.ask(
            "POST",
            "/v1/traces",
            content=gzip.compress(protobuf([trace])),
            headers={
                "content-type": "application/x-protobuf",
                "content-encoding": "gzip",
                "x-mlflow-experiment-id": self._experiment,
            },
        )
        return _trace(trace.id)

    def send_notes(self, notes: Sequence[Note]) -> Sequence[str]:
        self._read({note.trace for note in notes} - self._feedback.keys())
        return [self._note(note) for note in notes]

    def begin(self, plan: Plan, remote: str) -> str:
        self.check()
        run, dataset = remote.split() if remote else ("", self._dataset(plan.dataset))
        records = [_record(each.model_dump()) for each in plan.examples]
        self._connection.post(
            f"{_API3}/datasets/{dataset}/records", {"records": json.dumps(records)}
        )
        run = run or self._run(plan, dataset)
        return f"{run} {dataset}"

    def send_result(self, experiment: str, result: Result, remote: str) -> str:
        run = experiment.split()[0]
        self._connection.post(
            f"{_API}/traces/link-to-run", {"trace_ids": [_trace(result.trace)], "run_id": run}
        )
        return _trace(result.trace)

    def labels(self, traces: Iterable[Trace]) -> Iterator[Found]:
        ids = [_trace(trace.id) for trace in traces]
        for info in self._infos(ids):
            for told in info.get("assessments", []):
                if told.get("source", {}).get("source_type") == "HUMAN" and told.get("valid", True):
                    yield _found(told)

    def _find(self) -> str:
        """The id of the experiment; empty if there is none."""
        path = f"{_API}/experiments/get-by-name"
        try:
            told = self._connection.get(path, experiment_name=self.project)
        except ServiceError as error:
            if error.status == 404 and "Could not find experiment" in str(error):
                return ""
            raise
        found = field(told, "experiment", dict, "MLflow")
        if found.get("lifecycle_stage") == "deleted":
            raise UsageError(
                f"the experiment {self.project} of {self.address} is deleted: restore it, or name "
                "another one as in mlflow:project=NAME"
            )
        return str(found["experiment_id"])

    def _make(self) -> str:
        made = self._connection.post(f"{_API}/experiments/create", {"name": self.project})
        return str(field(made, "experiment_id", str, "MLflow"))

    def _dataset(self, name: str) -> str:
        """The id of a dataset; it is made if necessary: MLflow would take the same name twice."""
        asked = {"experiment_ids": [self._experiment], "filter_string": f"name = {_quoted(name)}"}
        found = self._connection.post(f"{_API3}/datasets/search", asked)
        listed = found.get("datasets") if isinstance(found, Mapping) else None
        if listed:
            return str(listed[0]["dataset_id"])
        made = self._connection.post(
            f"{_API3}/datasets/create", {"name": name, "experiment_ids": [self._experiment]}
        )
        return str(field(made, "dataset", dict, "MLflow")["dataset_id"])

    def _run(self, plan: Plan, dataset: str) -> str:
        """The id of the evaluation run of a plan; it is made if necessary."""
        plan_key = digest(plan.name, plan.dataset)
        asked = {
            "experiment_ids": [self._experiment],
            "filter": f"tags.`{PLAN}` = '{plan_key}'",
            "max_results": 1,
        }
        found = self._connection.post(f"{_API}/runs/search", asked)
        if isinstance(found, Mapping) and found.get("runs"):
            return str(found["runs"][0]["info"]["run_id"])
        now = round(datetime.now().timestamp() * 1000)
        tags = {"mlflow.runType": "genai_evaluate", PLAN: plan_key}
        made = self._connection.post(
            f"{_API}/runs/create",
            {
                "experiment_id": self._experiment,
                "run_name": plan.name,
                "start_time": now,
                "tags": [{"key": name, "value": value} for name, value in tags.items()],
            },
        )
        run = str(field(made, "run", dict, "MLflow")["info"]["run_id"])
        parameters = [
            {"key": name, "value": _text(value)[:LONGEST]}
            for name, value in plan.metadata.items()
            if value is not None
        ]
        self._connection.post(f"{_API}/runs/log-batch", {"run_id": run, "params": parameters})
        source = {
            "name": plan.dataset,
            "digest": plan.content[:8],
            "source_type": "mlflow_evaluation_dataset",
            "source": json.dumps({"dataset_id": dataset}),
        }
        self._connection.post(
            f"{_API}/runs/log-inputs", {"run_id": run, "datasets": [{"dataset": source}]}
        )
        self._connection.post(
            f"{_API}/runs/update", {"run_id": run, "status": "FINISHED", "end_time": now}
        )
        return run

    def _read(self, traces: Collection[str]) -> None:
        """Find out which feedback of ours traces hold.

        Raises:
            ServiceError: one is in another experiment of MLflow's, where it would stay.
        """
        found: dict[str, dict[str, tuple[str, str]]] = {trace: {} for trace in traces}
        for info in self._infos([_trace(trace) for trace in traces]):
            there = info["trace_location"].get("mlflow_experiment", {}).get("experiment_id")
            if self._experiment and there != self._experiment:
                raise ServiceError(
                    f"{self.address} holds the trace {info['trace_id']} in the experiment of "
                    f"number {there}, and MLflow moves no trace: push to that one, or delete it"
                )
            for each in info.get("assessments", []):
                metadata = each.get("metadata", {})
                if KEY in metadata:
                    told = (each["assessment_id"], metadata.get(CONTENT, ""))
                    found[_own(info["trace_id"])][metadata[KEY]] = told
        self._feedback |= found

    def _note(self, note: Note) -> str:
        """Add or change feedback; returns its id."""
        known = self._feedback[note.trace]
        id, content = known.get(note.key, ("", ""))
        if content == note.content:
            return id
        path = f"{_API3}/traces/{_trace(note.trace)}/assessments"
        told = _feedback(note)
        if id:
            changed = {**told, "assessment_id": id}
            mask = "feedback,rationale,metadata"
            self._connection.ask(
                "PATCH", f"{path}/{id}", json={"assessment": changed, "update_mask": mask}
            )
        else:
            made = self._connection.post(path, {"assessment": told})
            id = str(field(made, "assessment", dict, "MLflow")["assessment_id"])
        known[note.key] = (id, note.content)
        return id

    def _infos(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        if not ids:
            return []
        told = self._connection.post(f"{_API3}/traces/batchGetInfos", {"trace_ids": [*ids]})
        return list(told.get("trace_infos", [])) if isinstance(told, Mapping) else []


def _trace(id: str) -> str:
    return f"tr-{id}"


def _own(id: str) -> str:
    return id.removeprefix("tr-")


def _quoted(text: str) -> str:
    """A text in a filter; a text with both kinds of quotes cannot be written there."""
    return f'"{text}"' if "'" in text else f"'{text}'"


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _record(example: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset's record: MLflow tells two of them apart by their inputs."""
    question, answers = example["question"], example["answers"]
    named = {"question_id": example["name"]} if example["name"] else {}
    inputs = {"question": question} if question is not None else {"id": example["id"]}
    expected = {"expected_response": answers[0]} if answers else {}
    others = {"aliases": [*answers[1:]]} if answers[1:] else {}
    tags = {**named, "kind": example["kind"], "hops": example["hops"]}
    return {
        "inputs": {**inputs, **named},
        "expectations": {**expected, **others},
        "tags": {name: str(value) for name, value in tags.items() if value not in ("", None)},
        "source": {"source_type": "CODE", "source_data": {}},
    }


def _feedback(note: Note) -> dict[str, Any]:
    """A note as an assessment. Values of metadata are texts: MLflow drops others silently."""
    metadata = {name: _text(value) for name, value in note.metadata.items() if value is not None}
    metadata |= {KEY: note.key, CONTENT: note.content}
    if note.place is not None:
        metadata[PLACE] = str(note.place)
    feedback: dict[str, Any] = {"value": note.value}
    if note.value is None:
        feedback["error"] = {
            "error_code": "NOT_MEASURED",
            "error_message": note.explanation or note.label or "not measured",
        }
    return {
        "assessment_name": note.name if note.place is None else f"{note.name} of a document",
        "trace_id": _trace(note.trace),
        **({} if note.whole else {"span_id": note.span}),
        "source": {"source_type": SOURCES[note.kind], "source_id": "hopscope"},
        "feedback": feedback,
        **({"rationale": note.explanation} if note.explanation else {}),
        "metadata": metadata,
    }


def _found(told: Mapping[str, Any]) -> Found:
    """A person's feedback, expectation or note."""
    value = _value(told.get("feedback") or told.get("expectation") or {})
    place = str(told.get("metadata", {}).get(PLACE, ""))
    said: dict[str, Any] = {"note": told.get("rationale") or None}
    match value:
        case bool():
            said |= {"score": float(value), "label": json.dumps(value)}
        case int() | float():
            said |= {"score": float(value)}
        case str() if told["assessment_name"] == NOTES:
            said |= {"note": value}
        case None:
            pass
        case _:
            said |= {"label": _text(value)}
    return Found(
        trace=_own(told["trace_id"]),
        span=told.get("span_id", ""),
        place=whole_number(place),
        name=told["assessment_name"],
        author=told.get("source", {}).get("source_id", ""),
        remote=told.get("assessment_id", ""),
        made=datetime.fromisoformat(told["last_update_time"]),
        **said,
    )


def _value(held: Mapping[str, Any]) -> Any:
    if "serialized_value" in held:  # lists and objects
        return json_value(held["serialized_value"]["value"])
    return held.get("value")
