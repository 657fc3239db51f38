"""A vLLM server on the embedded reader's weights. HOPSCOPE_TEST_VLLM names a Python that has vLLM,
or the address of such a server that runs already."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hopscope.runtime.readers import tiny

VLLM = os.environ.get("HOPSCOPE_TEST_VLLM", "")
STARTS_IN = 600.0
"""Seconds that a server has to start."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not VLLM:
        missing = pytest.mark.skip(reason="HOPSCOPE_TEST_VLLM names no vLLM; `make test-vllm` does")
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(missing)


@pytest.fixture(scope="session")
def in_process() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What the reader `vllm` says to requests; see in_process.py."""
    if VLLM.startswith("http"):
        pytest.skip("HOPSCOPE_TEST_VLLM names a server, and no Python that has vLLM")

    def ask(requests: dict[str, Any]) -> dict[str, Any]:
        script = Path(__file__).with_name("in_process.py")
        done = subprocess.run(
            [VLLM, str(script), str(tiny.FOLDER)],
            input=json.dumps(requests),
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told

    return ask


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The model's address."""
    if VLLM.startswith("http"):
        yield VLLM
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("vllm")
    command = [VLLM, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny.FOLDER)]
    command += ["--served-model-name", "hopland", "--dtype", "float32", "--max-logprobs", "-1"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    # On processors a prompt that is read in parts kills the engine where a sample has a seed.
    command += ["--no-enable-chunked-prefill"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment(), stdout=log, stderr=log)
    try:
        ready = _wait(server, f"http://127.0.0.1:{port}/health")
        assert ready, (folder / "log").read_text()[-4000:]
        yield f"http://127.0.0.1:{port}/v1#hopland"
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:  # it does not listen while it starts
            server.kill()
            server.wait()


def environment() -> dict[str, str]:
    """Of a process that has vLLM: offline, quiet, small."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }


def _wait(server: "subprocess.Popen[bytes]", url: str) -> bool:
    until = time.monotonic() + STARTS_IN
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx.get(url, timeout=5, trust_env=False).is_success:
                return True
        except httpx.TransportError:
            time.sleep(0.5)
    print(f"vLLM: exit code {server.poll()}", file=sys.stderr)
    return False
