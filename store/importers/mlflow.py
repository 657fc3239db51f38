"""The traces of an experiment of MLflow, one at a time, in the form of the format `mlflow`.

The server is asked for the ids of traces page by page, and for the spans of each page in one go.
"""

from collections.abc import Iterator
from typing import Any

from hopscope.runtime.errors import TraceServerError
from hopscope.store.importers.trace_api import TraceApi, client

TOKEN, USER, PASSWORD = (f"MLFLOW_TRACKING_{name}" for name in ("TOKEN", "USERNAME", "PASSWORD"))
"""Name the key of a server that asks for one, as for MLflow's own client."""
PAGE = 50
"""Traces in a page; MLflow gives at most 500."""
_EXPERIMENTS, _TRACES = "/api/2.0/mlflow/experiments", "/api/3.0/mlflow/traces"


def pages(url: str, experiment: str) -> Iterator[dict[str, Any]]:
    """
    Args:
        url: of the server.
        experiment: its id or its name.

    Raises:
        UsageError, TraceServerError: as `TraceApi.page`.
    """
    with client(TOKEN, USER, PASSWORD) as http:
        api = TraceApi(http, url, f"{TOKEN}, or {USER} and {PASSWORD},")
        where = {"experiment_id": _id(api, url, experiment)}
        asked: dict[str, Any] = {
            "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": where}],
            "order_by": ["timestamp_ms ASC"],
            "max_results": PAGE,
        }
        seen: set[str] = set()
        while True:
            page = api.page(f"{_TRACES}/search", "traces", absent="experiment", json=asked)
            if ids := [_text(url, trace, "trace_id") for trace in page.get("traces", [])]:
                yield from _spans(api, ids)
            token = page.get("next_page_token")
            if not isinstance(token, str) or not token or token in seen:
                return
            seen.add(token)
            asked["page_token"] = token


def _id(api: TraceApi, url: str, experiment: str) -> str:
    """The id of an experiment."""
    if experiment.isdecimal():
        path, asked = f"{_EXPERIMENTS}/get", {"experiment_id": experiment}
    else:
        path, asked = f"{_EXPERIMENTS}/get-by-name", {"experiment_name": experiment}
    found = api.page(path, "experiment", absent="experiment", params=asked)
    return _text(url, found.get("experiment"), "experiment_id")


def _spans(api: TraceApi, ids: list[str]) -> Iterator[dict[str, Any]]:
    params = [("trace_ids", id) for id in ids]
    page = api.page(f"{_TRACES}/batchGet", "traces", absent="list of traces", params=params)
    for trace in page.get("traces", []):
        if isinstance(trace, dict):
            yield {"data": {"spans": trace.get("spans", [])}}


def _text(url: str, found: Any, name: str) -> str:
    text = found.get(name) if isinstance(found, dict) else None
    if not isinstance(text, str) or not text:
        raise TraceServerError(f"{url} answers without {name}: is it a server of MLflow?")
    return text
