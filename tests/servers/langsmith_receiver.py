"""A receiver in LangSmith's place: what it gets of one of our runs, and of a runnable of
LangChain's afterwards, which shows that it would have got the former.

`python -m tests.servers.langsmith_receiver` prints a line for each switch: its name and both
numbers of posts. Each has a process of its own, because langsmith reads the environment once and
keeps it; they are forks of one that has loaded the libraries.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

VARIABLES = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
CONTEXTS = ("configured", "enabled by context", "tracer by context", "inside a runnable")


@contextmanager
def receiver() -> Iterator[tuple[str, list[bytes]]]:
    """Its address, and the bodies that were posted to it so far."""
    posted: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                while size := int(self.rfile.readline(), 16):
                    posted.append(self.rfile.read(size))
                    self.rfile.readline()
            else:
                posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer()

        do_PATCH = do_POST

        def answer(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", posted
    finally:
        server.shutdown()
        server.server_close()


def ask() -> None:
    """A run of ours that succeeds."""
    from hopscope.runtime.execution.run import Workflow, run
    from hopscope.runtime.execution.state import Deps
    from hopscope.runtime.types import Passage, Question
    from hopscope.workflows import ircot
    from tests.talk import ScriptedRetriever, Talker

    passage = Passage(id="0", title="T", text="text")
    reader = Talker(["One thought.", "So the answer is: A.", "So the answer is: A."])
    deps = Deps(reader=reader, retriever=ScriptedRetriever(lambda _: [passage]))
    result = run(Workflow("ircot", ircot.build(), {}), Question(text="Who?", answers=("A",)), deps)
    assert (result.status, result.answer) == ("ok", "A"), result


def within(switch: str, do: Callable[[], None]) -> None:
    """Do it where LangChain is told to trace in this way."""
    import langsmith
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tracers import LangChainTracer
    from langchain_core.tracers.context import tracing_v2_enabled

    if switch == "configured":
        langsmith.configure(enabled=True)
        do()
    elif switch == "enabled by context":
        with langsmith.tracing_context(enabled=True):
            do()
    elif switch == "tracer by context":
        with tracing_v2_enabled():
            do()
    elif switch == "inside a runnable":
        # Of the runnable around it the tracer tells, of what is done inside it must not.
        RunnableLambda(lambda _: do()).invoke("in", config={"callbacks": [LangChainTracer()]})
    else:
        do()


def count(switch: str) -> None:
    with receiver() as (url, posted):
        os.environ |= {"LANGSMITH_ENDPOINT": url, "LANGSMITH_API_KEY": "none"}
        if switch in VARIABLES:
            os.environ[switch] = "true"
        # As they are, bodies can be searched.
        os.environ["LANGSMITH_DISABLE_RUN_COMPRESSION"] = "true"
        from langchain_core.runnables import RunnableLambda
        from langchain_core.tracers.langchain import wait_for_all_tracers

        def told(text: bytes, do: Callable[[], None]) -> int:
            within(switch, do)
            wait_for_all_tracers()
            return sum(text in body for body in posted)

        ours = told(b"Who?", ask)
        theirs = told(b"control", lambda: RunnableLambda(str.upper).invoke("control"))
        print(f"{switch}:", ours, theirs, flush=True)


def main() -> None:

    import tests.talk  # noqa: F401

    for switch in (*VARIABLES, *CONTEXTS):
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            if status:
                sys.exit(f"{switch}: {os.waitstatus_to_exitcode(status)}")
        else:
            count(switch)
            os._exit(0)


if __name__ == "__main__":
    main()
