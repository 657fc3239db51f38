"""A server that speaks as much of OpenSearch's HTTP API as is used here, by its documentation.

It is strict: whatever is not documented, or not used here, is refused with status 400, so that a
request that a real service would refuse does not pass. It ranks by the embedded BM25.
"""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Passage

FIELDS = {"position": "integer", "id": "keyword", "title": "text", "text": "text"}
SORTS = ([{"_score": "desc"}, {"position": "asc"}], [{"position": "asc"}])


class Refusal(Exception):
    """An error in the form that OpenSearch gives it."""

    def __init__(self, status: int, type: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        cause = {"type": type, "reason": reason}
        self.body = {"error": {"root_cause": [cause], **cause}, "status": status}


@dataclass
class Index:
    """Passages written, and those that searches see since the latest refresh."""

    settings: dict[str, Any]
    mappings: dict[str, Any]
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    ranker: bm25.Bm25 | None = None


class Asked:
    """One request."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        self.method = method
        self.path = [part for part in parts.path.split("/") if part]
        self.parameters = dict(parse_qsl(parts.query))
        self.authorization = headers.get("authorization", "")
        self.text = body.decode()

    @property
    def action(self) -> str:
        """Its last part, if that is an action, else `index`."""
        return self.path[-1] if self.path and self.path[-1].startswith("_") else "index"

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def lines(self) -> list[Any]:
        require(self.text.endswith("\n"), "The request must be terminated by a newline [\\n]")
        return [json.loads(line) for line in self.text.splitlines()]


def require(condition: bool, reason: str) -> None:
    if not condition:
        raise Refusal(400, "illegal_argument_exception", reason)


class Service:
    """Indices and aliases, and what was asked."""

    def __init__(self) -> None:
        self.indices: dict[str, Index] = {}
        self.aliases: dict[str, set[str]] = {}
        self.authorization = ""
        """What every request must bring, if any."""
        self.asked: list[Asked] = []
        self.instead: Callable[[Asked], tuple[int, Any] | None] = lambda asked: None
        """Gives another answer where it is not None; bytes are sent as they are."""
        self.headers: dict[str, str] = {}
        self.url = ""

    def wants(self, user: str, password: str) -> None:
        """Refuse all who do not give these."""
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self.asked.append(asked)
        if (other := self.instead(asked)) is not None:
            return other
        try:
            if asked.authorization != self.authorization:
                raise Refusal(401, "security_exception", "missing or wrong credentials")
            return 200, getattr(self, f"{asked.method.lower()}_{asked.action.lstrip('_')}")(asked)
        except Refusal as refusal:
            return refusal.status, refusal.body

    def find(self, asked: Asked) -> dict[str, Index]:
        name = asked.path[0]
        names = self.aliases.get(name, {name} & self.indices.keys())
        if not names:
            raise Refusal(404, "index_not_found_exception", f"no such index [{name}]")
        return {name: self.indices[name] for name in sorted(names)}

    def one(self, asked: Asked) -> Index:
        [index] = self.find(asked).values()
        return index

    def head_index(self, asked: Asked) -> Any:
        return self.find(asked) and None

    def get_index(self, asked: Asked) -> Any:
        return {
            name: {
                "aliases": {alias: {} for alias, to in self.aliases.items() if name in to},
                "mappings": index.mappings,
                "settings": {"index": index.settings},
            }
            for name, index in self.find(asked).items()
        }

    def put_index(self, asked: Asked) -> Any:
        [name] = asked.path
        require(name not in self.indices and name not in self.aliases, "already exists")
        body = asked.json
        require(body.keys() == {"settings", "mappings"}, f"unknown key in {set(body)}")
        mapped = body["mappings"]["properties"]
        require(mapped["contents"] == {"type": "text", "analyzer": "english"}, "no such analyzer")
        require({n: p["type"] for n, p in mapped.items() if n != "contents"} == FIELDS, "fields")
        require(all(mapped[n]["copy_to"] == "contents" for n in ("title", "text")), "copy_to")
        similarity = body["settings"]["index"]["similarity"]["default"]
        require(similarity.keys() == {"type", "k1", "b"}, "Unknown settings for similarity")
        require(similarity["type"] == "BM25", f"Unknown Similarity type [{similarity['type']}]")
        self.indices[name] = Index(body["settings"]["index"], body["mappings"])
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def delete_index(self, asked: Asked) -> Any:
        [name] = asked.path
        require(name not in self.aliases, "The provided expression matches an alias")
        del self.indices[next(iter(self.find(asked)))]
        for alias in list(self.aliases):
            self.aliases[alias].discard(name)
            if not self.aliases[alias]:
                del self.aliases[alias]
        return {"acknowledged": True}

    def post_bulk(self, asked: Asked) -> Any:
        index, lines, items = self.one(asked), asked.lines, []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            require(action.keys() == {"index"} and action["index"].keys() == {"_id"}, "action")
            id = action["index"]["_id"]
            told: dict[str, Any] = {"_id": id, "status": 201, "result": "created"}
            if index.settings.get("blocks.write"):
                error = {"type": "cluster_block_exception", "reason": "index write (api)"}
                told = {"_id": id, "status": 403, "error": error}
            elif source.keys() != FIELDS.keys():
                error = {"type": "strict_dynamic_mapping_exception", "reason": "not allowed"}
                told = {"_id": id, "status": 400, "error": error}
            else:
                index.written[id] = source
            items.append({"index": told})
        return {"took": 1, "errors": any("error" in i["index"] for i in items), "items": items}

    def post_refresh(self, asked: Asked) -> Any:
        index = self.one(asked)
        index.seen, index.ranker = dict(index.written), None
        return {"_shards": {"total": 1, "successful": 1, "failed": 0}}

    def post_count(self, asked: Asked) -> Any:
        return {"count": len(self.one(asked).seen)}

    def put_mapping(self, asked: Asked) -> Any:
        require(asked.json.keys() == {"_meta"}, "only _meta can be changed")
        self.one(asked).mappings |= asked.json
        return {"acknowledged": True}

    def put_settings(self, asked: Asked) -> Any:
        changes = asked.json["index"]
        known = {"refresh_interval", "number_of_replicas", "blocks.write"}
        require(changes.keys() <= known, f"unknown setting in {set(changes)}")
        settings = self.one(asked).settings
        settings |= changes
        for key in [key for key, value in settings.items() if value is None]:
            del settings[key]
        return {"acknowledged": True}

    def post_aliases(self, asked: Asked) -> Any:
        for action in asked.json["actions"]:
            [(what, on)] = action.items()
            require(
                on.keys() == {"index", "alias"} and on["index"] in self.indices, "no such index"
            )
            names = self.aliases.setdefault(on["alias"], set())
            {"add": names.add, "remove": names.remove}[what](on["index"])
        return {"acknowledged": True}

    def post_search(self, asked: Asked) -> Any:
        return self._search(self.one(asked), asked.json)

    def post_msearch(self, asked: Asked) -> Any:
        require(asked.parameters == {"search_type": "dfs_query_then_fetch"}, "parameters")
        index, lines = self.one(asked), asked.lines
        require(all(header == {} for header in lines[::2]), "unknown key in the header")
        return {"responses": [self._search(index, body) | {"status": 200} for body in lines[1::2]]}

    def _search(self, index: Index, body: dict[str, Any]) -> dict[str, Any]:
        known = {"query", "sort", "size", "search_after", "_source", "track_total_hits"}
        require(body.keys() <= known and body["sort"] in SORTS, f"unknown key in {set(body)}")
        require(body["size"] <= 10_000, "Result window is too large")
        found = self._matching(index, body["query"]) if "query" in body else self._all(index, body)
        names = body.get("_source", list(FIELDS))
        hits = [
            {
                "_id": str(at),
                "_score": score,
                "_source": {name: index.seen[str(at)][name] for name in names},
                "sort": [at] if score is None else [score, at],
            }
            for at, score in found[: body["size"]]
        ]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"hits": hits}}

    def _all(self, index: Index, body: dict[str, Any]) -> list[tuple[int, None]]:
        [after] = body.get("search_after", [-1])
        places = sorted(source["position"] for source in index.seen.values())
        return [(at, None) for at in places if at > after]

    def _matching(self, index: Index, query: dict[str, Any]) -> list[tuple[int, float]]:
        text = query["match"]["contents"]["query"]
        require(query == {"match": {"contents": {"query": text}}}, "[match] unknown token")
        if index.ranker is None:
            told = index.settings["similarity"]["default"]
            held = sorted(index.seen.values(), key=lambda source: int(source["position"]))
            passages = [
                Passage(id=str(s["position"]), title=s["title"], text=s["text"]) for s in held
            ]
            index.ranker = bm25.from_passages(passages, name="x", k1=told["k1"], b=told["b"])
        [ranking] = index.ranker.search([text], k=len(index.seen))
        return [(int(hit.passage.id), hit.score) for hit in ranking]


@contextmanager
def running(service: Service, *, certificate: Path | None = None) -> Iterator[Service]:
    """The service on a port of this machine; with a file of a certificate and its key, by https."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            asked = Asked(self.command, self.path, self.headers, self.rfile.read(length))
            status, answer = service.answer(asked)
            plain = isinstance(answer, bytes)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            body = b"" if self.command == "HEAD" else body
            with suppress(ConnectionError):  # who asked no longer waits
                self.send_response(status)
                for key, value in service.headers.items():
                    self.send_header(key, value)
                self.send_header("content-type", "text/html" if plain else "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = respond

        def handle(self) -> None:
            with suppress(ssl.SSLError, ConnectionError):  # who asked does not trust it
                super().handle()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        service.url = service.url.replace("http", "https")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
