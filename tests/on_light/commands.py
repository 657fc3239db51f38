"""Runs commands, one JSON list of words a line of stdin, in one process that refuses the libraries
that run models; prints a JSON object with exit code, stdout and stderr for each."""

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

LOCAL = ("torch", "transformers", "tokenizers", "huggingface_hub")


def run(words: list[str]) -> dict[str, object]:
    from hopscope.cli.main import main

    out, err, code = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    # Where they are installed, too, nobody finds them.
    sys.modules.update(dict.fromkeys(LOCAL))  # type: ignore[arg-type]
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
