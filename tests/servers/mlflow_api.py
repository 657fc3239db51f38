"""A small MLflow in memory, as the real one answers (3.17.2, `make test-mlflow`): the same trace
again is the same, the same feedback again is another, metadata that are no texts are dropped."""

import gzip
import json
from collections.abc import Callable
from typing import Any

from tests.servers.contract import Answer, Asked, Refusal, spans

TOKEN = "mlflow-77aa01c4-token-of-tests"
TIME = "2026-11-22T09:00:00.000Z"


class MLflow:
    """The state of a server."""

    def __init__(self) -> None:
        self.experiments: dict[str, str] = {}
        """Ids by name."""
        self.traces: dict[str, str] = {}
        """The experiment of each."""
        self.spans: dict[str, dict[str, Any]] = {}
        self.assessments: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        """By dataset and inputs."""
        self.linked: set[tuple[str, str]] = set()
        """Runs and their traces."""
        self.requests: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        self.requests.append(asked)
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, f"You are not authenticated: {asked.headers} {TOKEN}")
        if asked.path == "/v1/traces":
            return self._traces(asked)
        _, _, version, _, *path = asked.path.split("/")
        told = asked.query if asked.method == "GET" else asked.json()
        return 200, self._answer(asked.method, version, path, told)

    def _answer(self, method: str, version: str, path: list[str], told: Any) -> Any:
        match method, version, path:
            case "GET", "2.0", ["experiments", "get-by-name"]:
                name = told["experiment_name"]
                if name not in self.experiments:
                    raise Refusal(404, f"Could not find experiment with name '{name}'")
                found = {"experiment_id": self.experiments[name], "lifecycle_stage": "active"}
                return {"experiment": found}
            case "POST", "2.0", ["experiments", "create"]:
                self.experiments[told["name"]] = str(len(self.experiments) + 1)
                return {"experiment_id": self.experiments[told["name"]]}
            case "POST", "3.0", ["traces", "batchGetInfos"]:
                known = [id for id in told["trace_ids"] if id in self.traces]
                return {"trace_infos": [self._info(id) for id in known]}
            case "POST", "3.0", ["traces", trace, "assessments"]:
                return {"assessment": self._assess(trace, told["assessment"])}
            case "PATCH", "3.0", ["traces", _, "assessments", id]:
                held = self.assessments[id]
                for field in told["update_mask"].split(","):
                    if field == "metadata":
                        held[field] |= told["assessment"][field]
                    elif field in told["assessment"]:
                        held[field] = told["assessment"][field]
                return {"assessment": held}
            case "POST", "2.0", ["traces", "link-to-run"]:
                self.linked |= {(told["run_id"], trace) for trace in told["trace_ids"]}
                return {}
            case "POST", "3.0", ["datasets", "search"]:
                [_, name] = told["filter_string"].split(" = ")
                found = [each for each in self.datasets.values() if each["name"] == name[1:-1]]
                return {"datasets": found} if found else {}
            case "POST", "3.0", ["datasets", "create"]:
                made = {"dataset_id": f"d-{len(self.datasets)}", "name": told["name"]}
                self.datasets[made["dataset_id"]] = made
                return {"dataset": made}
            case "POST", "3.0", ["datasets", id, "records"]:
                for record in json.loads(told["records"]):
                    self.records[id, json.dumps(record["inputs"])] = record
                return {}
            case "POST", "2.0", ["runs", "search"]:
                value = told["filter"].split("'")[1]
                found = [run for run in self.runs.values() if value in run["tags"]]
                return {"runs": found} if found else {}
            case "POST", "2.0", ["runs", "create"]:
                info = {"run_id": f"r-{len(self.runs)}", "run_name": told["run_name"]}
                tags = [each["value"] for each in told["tags"]]
                self.runs[info["run_id"]] = {"info": info, "tags": tags, "params": {}}
                return {"run": self.runs[info["run_id"]]}
            case "POST", "2.0", ["runs", "log-batch"]:
                params = {each["key"]: each["value"] for each in told["params"]}
                self.runs[told["run_id"]]["params"] |= params
                return {}
            case "POST", "2.0", ["runs", "log-inputs" | "update"]:
                self.runs[told["run_id"]] |= told
                return {}
        raise Refusal(404, f"no {method} {'/'.join(path)}")

    def _traces(self, asked: Asked) -> Answer:
        if asked.headers.get("content-type") != "application/x-protobuf":
            raise Refusal(400, "Invalid Content-Type")
        if asked.headers.get("x-mlflow-experiment-id") not in self.experiments.values():
            raise Refusal(404, "No Experiment exists")
        unpack: Callable[[bytes], bytes] = (
            gzip.decompress if asked.headers.get("content-encoding") == "gzip" else bytes
        )
        for span in spans(unpack(asked.body)):
            self.traces.setdefault(f"tr-{span['trace']}", asked.headers["x-mlflow-experiment-id"])
            self.spans[span["id"]] = span
        return 200, None

    def _assess(self, trace: str, told: dict[str, Any]) -> dict[str, Any]:
        if trace not in self.traces:
            raise Refusal(404, f"Trace with ID '{trace}' not found.")
        if told["source"]["source_type"] not in ("CODE", "LLM_JUDGE", "HUMAN"):
            raise Refusal(400, "Invalid assessment source type")
        if ("feedback" in told) == ("expectation" in told):
            raise Refusal(400, "Exactly one of `expectation`, `feedback` should be specified.")
        texts = all(isinstance(each, str) for each in told.get("metadata", {}).values())
        id = f"a-{len(self.assessments)}"
        self.assessments[id] = {
            **told,
            "metadata": told.get("metadata", {}) if texts else {},
            "assessment_id": id,
            "last_update_time": TIME,
            "valid": True,
        }
        return self.assessments[id]

    def _info(self, id: str) -> dict[str, Any]:
        where = {"mlflow_experiment": {"experiment_id": self.traces[id]}}
        said = [each for each in self.assessments.values() if each["trace_id"] == id]
        return {"trace_id": id, "trace_location": where, "assessments": said}
