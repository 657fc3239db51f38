"""Opik's private API by its documented schemas: the models of SDK 2.2 and the limits of the
server's records. It refuses what these refuse: a missing key, ids that are no UUIDs of version 7,
traces and scores of another form, more than 1,000 of them; and it makes no trace of a span that
names its own."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from tests.servers.contract import Answer, Asked, Refusal, spans

KEY, WORKSPACE = "opik-4d1f7be2-key-of-tests", "team-of-tests"


def _seventh(value: str) -> str:
    if uuid.UUID(value).version != 7:
        raise ValueError("no UUID of version 7")
    return value


Id = Annotated[str, AfterValidator(_seventh)]
Named = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorInfo(Strict):
    exception_type: str
    message: str | None = None
    traceback: str


class Trace(Strict):
    """`TraceWrite`."""

    id: Id
    project_name: Named
    name: str
    start_time: datetime
    end_time: datetime | None = None
    input: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    error_info: ErrorInfo | None = None


class Score(Strict):
    """`FeedbackScoreBatchItem`."""

    id: Id
    project_name: Named
    name: Named
    value: float = Field(ge=-999999999.999999999, le=999999999.999999999)
    reason: str | None = None
    source: Literal["ui", "sdk", "online_scoring"]
    category_name: str | None = None


class Item(Strict):
    """`DatasetItemWrite`."""

    id: Id
    source: Literal["manual", "trace", "span", "sdk"]
    data: dict[str, Any]


class Experiment(Strict):
    """`ExperimentWrite`."""

    id: Id
    dataset_name: Named
    name: str
    metadata: dict[str, Any] | None = None


class ExperimentItem(Strict):
    id: Id
    experiment_id: Id
    dataset_item_id: Id
    trace_id: Id


class Opik:
    """The state of a workspace."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self.spans: dict[str, dict[str, Any]] = {}
        self.scores: dict[tuple[str, str, str], dict[str, Any]] = {}
        """By kind, id and name: the same score replaces."""
        self.datasets: dict[str, dict[str, dict[str, Any]]] = {}
        self.experiments: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.people: dict[str, dict[str, Any]] = {}
        """What people said, by trace or span: fields of `TracePublic` and `SpanPublic`."""
        self.requests: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        self.requests.append(asked)
        if asked.headers.get("authorization") != KEY:
            raise Refusal(401, f"API key should be provided, not {asked.headers} {KEY}")
        if asked.headers.get("comet-workspace") != WORKSPACE:
            raise Refusal(403, "no access to this workspace")
        try:
            return self._answer(asked, asked.path.removeprefix("/api/v1/private"))
        except ValidationError as error:
            raise Refusal(422, str(error)) from None

    def _answer(self, asked: Asked, path: str) -> Answer:
        match asked.method, path.strip("/").split("/"):
            case "GET", ["projects"]:
                return 200, {"page": 1, "size": 1, "total": 0, "content": []}
            case "POST", ["traces", "batch"]:
                for each in _listed(asked.json(), "traces"):
                    self.traces[Trace.model_validate(each).id] = each
                return 204, None
            case "POST", ["otel", "v1", "traces"]:
                return self._otel(asked)
            case "PUT", ["traces" | "spans" as kind, "feedback-scores"]:
                for each in _listed(asked.json(), "scores"):
                    score = Score.model_validate(each)
                    self.scores[kind, score.id, score.name] = each
                return 204, None
            case "POST", ["datasets"]:
                name = asked.json()["name"]
                if name in self.datasets:
                    raise Refusal(409, "Dataset already exists")
                self.datasets[name] = {}
                return 201, None
            case "PUT", ["datasets", "items"]:
                dataset = self.datasets[asked.json()["dataset_name"]]
                for each in _listed(asked.json(), "items"):
                    dataset[Item.model_validate(each).id] = each
                return 204, None
            case "POST", ["experiments"]:
                experiment = Experiment.model_validate(asked.json())
                if experiment.id in self.experiments:
                    raise Refusal(409, "Experiment already exists")
                self.experiments[experiment.id] = asked.json()
                return 201, None
            case "POST", ["experiments", "items"]:
                for each in _listed(asked.json(), "experiment_items"):
                    item = ExperimentItem.model_validate(each)
                    dataset = self.datasets[self.experiments[item.experiment_id]["dataset_name"]]
                    if item.dataset_item_id not in dataset:
                        raise Refusal(409, "dataset item of another dataset")
                    self.items[item.id] = each
                return 204, None
            case "GET", ["traces", id]:
                if id not in self.traces:
                    raise Refusal(404, "Trace not found")
                return 200, {**self.traces[id], **self.people.get(id, {})}
            case "GET", ["spans"]:
                of = asked.query["trace_id"]
                found = [each for each in self.spans.values() if each["trace_id"] == of]
                content = [{**each, **self.people.get(each["id"], {})} for each in found]
                return 200, {"page": 1, "size": len(found), "total": len(found), "content": content}
        raise Refusal(404, f"no {asked.method} {asked.path}")

    def _otel(self, asked: Asked) -> Answer:
        if asked.headers.get("content-type") != "application/x-protobuf":
            raise Refusal(415, "protobuf or JSON")
        for span in spans(asked.body):
            told = span["attributes"]
            # Without these attributes Opik makes ids that nobody outside can know.
            made = {
                "id": _seventh(told["opik.span_id"]),
                "trace_id": _seventh(told["opik.trace_id"]),
                "parent_span_id": told.get("opik.parent_span_id"),
                "name": span["name"],
                "attributes": told,
            }
            self.spans[made["id"]] = made
        return 200, None


def _listed(body: Mapping[str, Any], name: str) -> list[Any]:
    found = body[name]
    if not 1 <= len(found) <= 1000:
        raise Refusal(422, f"{name}: size must be between 1 and 1000")
    return list(found)
