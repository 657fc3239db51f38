"""Langfuse's public API by its documented schemas: the server's API definition and the models of
SDK 5.0.4. It refuses what these refuse: a missing key, another ingestion version, an encoding other
than gzip, a body of scores over 1,000,000 bytes, and scores of another form, one by one (207)."""

import base64
import gzip
import math
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tests.servers.contract import Answer, Asked, Refusal, spans

PUBLIC, SECRET = "pk-lf-public-of-tests", "sk-lf-9f3b2c71-secret-of-tests"
LARGEST = 1_000_000


class Score(BaseModel):
    """`CreateScoreRequest`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | None = None
    traceId: str | None = None
    sessionId: str | None = None
    observationId: str | None = None
    datasetRunId: str | None = None
    name: str
    value: float | int | str
    comment: str | None = None
    metadata: dict[str, Any] | None = None
    environment: str | None = None
    queueId: str | None = None
    dataType: Literal["NUMERIC", "BOOLEAN", "CATEGORICAL", "CORRECTION", "TEXT"] | None = None
    configId: str | None = None
    source: Literal["API", "ANNOTATION"] | None = None
    timestamp: str | None = None

    @model_validator(mode="after")
    def _typed(self) -> "Score":
        number = isinstance(self.value, int | float)
        if (self.dataType or "NUMERIC") in ("NUMERIC", "BOOLEAN") and not number:
            raise ValueError("value must be a number")
        if self.dataType in ("CATEGORICAL", "TEXT", "CORRECTION") and number:
            raise ValueError("value must be a string")
        if self.dataType == "BOOLEAN" and self.value not in (0, 1):
            raise ValueError("a boolean is 0 or 1")
        if number and not math.isfinite(float(self.value)):
            raise ValueError("no finite number")
        if self.dataType == "TEXT" and not 1 <= len(str(self.value)) <= 500:
            raise ValueError("a text has 1 to 500 characters")
        if self.timestamp and datetime.fromisoformat(self.timestamp).tzinfo is None:
            raise ValueError("a timestamp has a timezone")
        if not (self.traceId or self.sessionId or self.datasetRunId):
            raise ValueError("a score belongs to a trace, session or dataset run")
        return self


class Item(BaseModel):
    """`CreateDatasetItemRequest`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    datasetName: str
    input: Any = None
    expectedOutput: Any = None
    metadata: Any = None
    sourceTraceId: str | None = None
    sourceObservationId: str | None = None
    id: str | None = None
    status: Literal["ACTIVE", "ARCHIVED"] | None = None


class Langfuse:
    """The state of a project."""

    def __init__(self) -> None:
        self.spans: dict[tuple[str, str], dict[str, Any]] = {}
        """By trace and id: the same span replaces."""
        self.scores: dict[tuple[str, str], dict[str, Any]] = {}
        """By id and time: only with both the same score replaces."""
        self.datasets: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.annotations: list[dict[str, Any]] = []
        """`ScoreV3` records of people."""
        self.rejected: set[str] = set()
        """Names of scores that are rejected."""
        self.requests: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        self.requests.append(asked)
        login = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        given = asked.headers.get("authorization", "")
        if given != f"Basic {login}":
            # It shows what it got, as careless servers do: no message may repeat it.
            raise Refusal(401, f"Invalid credentials: {given} {SECRET}")
        match (asked.method, asked.path):
            case "GET", "/api/public/projects":
                return 200, {"data": [{"id": "p", "name": "tests"}]}
            case "POST", "/api/public/otel/v1/traces":
                return self._traces(asked)
            case "POST", "/api/public/scores":
                return self._scores(asked)
            case "POST", "/api/public/v2/datasets":
                name = asked.json()["name"]
                made = {"id": f"d-{name}", "name": name, "metadata": None}
                return 200, self.datasets.setdefault(name, made)
            case "POST", "/api/public/dataset-items":
                return self._item(asked)
            case "GET", "/api/public/v3/scores":
                return self._read(asked)
        raise Refusal(404, f"no {asked.method} {asked.path}")

    def _traces(self, asked: Asked) -> Answer:
        if asked.headers.get("x-langfuse-ingestion-version") != "4":
            raise Refusal(400, "x-langfuse-ingestion-version must be 4")
        if asked.headers.get("content-type") != "application/x-protobuf":
            raise Refusal(400, "Invalid content type")
        body = asked.body
        encoding = asked.headers.get("content-encoding")
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding:
            raise Refusal(400, f"only gzip is decoded, not {encoding}")
        for span in spans(body):
            self.spans[span["trace"], span["id"]] = span
        return 200, {}

    def _scores(self, asked: Asked) -> Answer:
        if len(asked.body) > LARGEST:
            raise Refusal(413, "Body exceeded 1mb limit")
        listed = asked.json()
        if not isinstance(listed, list):
            raise Refusal(400, "the body must be an array")
        errors = []
        for each in listed:
            try:
                score = Score.model_validate(each)
                if score.name in self.rejected:
                    raise ValueError("name is reserved")
            except ValidationError as error:
                errors.append({"message": str(error.errors()[0]["msg"])})
            except ValueError as error:
                errors.append({"message": f"{each['name']}: {error}"})
            else:
                self.scores[score.id or "", score.timestamp or ""] = each
        if not errors:
            return 202, {"message": "Accepted"}
        accepted = len(listed) - len(errors)
        return 207, {"accepted": accepted, "rejected": len(errors), "errors": errors}

    def _item(self, asked: Asked) -> Answer:
        try:
            item = Item.model_validate(asked.json())
        except ValidationError as error:
            raise Refusal(400, str(error)) from None
        if item.datasetName not in self.datasets:
            raise Refusal(404, "Dataset not found")
        before = self.items.get(item.id or "")
        if before and before["datasetName"] != item.datasetName:
            raise Refusal(404, "the id is an item of another dataset")
        self.items[item.id or ""] = asked.json()
        return 200, asked.json()

    def _read(self, asked: Asked) -> Answer:
        """Pages of one score, so that a reader must follow the cursor."""
        if int(asked.query.get("limit", 50)) > 100:
            raise Refusal(400, "limit is at most 100")
        if {*asked.query["fields"].split(",")} - {"details", "subject", "annotation"}:
            raise Refusal(400, "unknown field group")
        found = [
            each
            for each in self.annotations
            if asked.query["traceId"] in (each["subject"]["id"], each["subject"].get("traceId"))
            and each["source"] == asked.query["source"]
        ]
        at = int(asked.query.get("cursor", 0))
        more = {"cursor": str(at + 1)} if at + 1 < len(found) else {}
        return 200, {"data": found[at : at + 1], "meta": {"limit": 1, **more}}
