"""A key leaves in the request only: no output, log, error or file of ours shows it."""

import logging
from pathlib import Path

import pytest

from hopscope.cli.main import main
from tests.api.services.stored_experiment import NAME
from tests.servers import langfuse_api, mlflow_api, opik_api
from tests.servers.langfuse_api import Langfuse
from tests.servers.mlflow_api import MLflow
from tests.servers.opik_api import Opik

SECRETS = {
    "langfuse": (langfuse_api.PUBLIC, langfuse_api.SECRET),
    "mlflow": (mlflow_api.TOKEN,),
    "opik": (opik_api.KEY,),
}
VARIABLES = {
    "langfuse": "LANGFUSE_SECRET_KEY",
    "mlflow": "MLFLOW_TRACKING_TOKEN",
    "opik": "OPIK_API_KEY",
}


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    try:
        main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("service", SECRETS)
def test_a_key_is_shown_nowhere(
    service: str,
    filled: Path,
    tmp_path: Path,
    langfuse: Langfuse,
    mlflow: MLflow,
    opik: Opik,
    bare: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also where the server refuses it and repeats it in its answer."""
    caplog.set_level(logging.DEBUG)
    db = ("--db", str(filled))
    said = []
    for command in (
        ["push", service, NAME, "--dry-run"],
        ["push", service, NAME],
        ["pull", service, NAME],
    ):
        code, told = shown(capsys, *command, *db)
        assert code == 0, told
        said.append(told)
    bare.setenv(VARIABLES[service], SECRETS[service][-1][:-1] + "x")
    code, told = shown(capsys, "push", service, NAME, *db)
    assert (code, "does not take the key" in told) == (2, True), told
    said.append(told)
    files = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    everything = "\n".join([*said, caplog.text]).encode() + b"\n".join(files)
    for secret in SECRETS[service]:
        for part in (secret, secret[:-1], secret[6:]):
            assert part.encode() not in everything


def test_a_dry_run_names_the_keys_that_are_missing(
    filled: Path, bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("push", "langfuse", NAME, "--dry-run", "--db", str(filled))
    code, told = shown(capsys, *command)
    assert (code, "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY" in told) == (0, True), told
    bare.setenv("LANGFUSE_PUBLIC_KEY", langfuse_api.PUBLIC)
    bare.setenv("LANGFUSE_SECRET_KEY", langfuse_api.SECRET)
    code, told = shown(capsys, *command)
    assert (code, "wants keys" in told) == (0, False), told
