"""A server of OpenAI's chat API without a model: it answers with a name where a prompt holds it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def naming(name: str, before: Callable[[], object] = lambda: None) -> Iterator[str]:
    """A server on loopback that answers `name` to prompts that hold it and `nowhere` to others; a
    reader's name for it. `before` is called before each answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send({"data": [{"id": "scripted"}]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            before()
            text = " ".join(str(message["content"]) for message in asked["messages"])
            said = name if name in text else "nowhere"
            token = {"token": said, "logprob": -0.1, "bytes": list(said.encode())}
            choice = {
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": said},
                "logprobs": {"content": [{**token, "top_logprobs": [token]}]},
            }
            count = asked.get("n", 1)
            self._send(
                {
                    "choices": [{"index": place, **choice} for place in range(count)],
                    "usage": {"prompt_tokens": len(text.split()), "completion_tokens": count},
                }
            )

        def _send(self, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"openai:http://127.0.0.1:{server.server_port}/v1#scripted"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
