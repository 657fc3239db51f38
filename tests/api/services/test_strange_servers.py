"""Another server at the address is named, and nothing is sent to it."""

from pathlib import Path

import pytest

from hopscope.api.pushing.pulling import pull
from hopscope.api.pushing.pushing import push
from hopscope.api.sharing.service import ServiceError
from tests.api.services.stored_experiment import NAME
from tests.servers import langfuse_api, mlflow_api, opik_api
from tests.servers.contract import Answer, Asked, serving

KEYS = {
    "langfuse": {
        "LANGFUSE_PUBLIC_KEY": langfuse_api.PUBLIC,
        "LANGFUSE_SECRET_KEY": langfuse_api.SECRET,
    },
    "mlflow": {"MLFLOW_TRACKING_TOKEN": mlflow_api.TOKEN},
    "opik": {"OPIK_API_KEY": opik_api.KEY},
}


@pytest.mark.parametrize("told", [{"hello": "world"}, ["hello"], None, {"data": 1, "content": 1}])
@pytest.mark.parametrize("service", KEYS)
def test_a_server_of_another_kind_is_named(
    service: str, told: object, filled: Path, bare: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS[service].items():
        bare.setenv(name, value)
    methods = []

    def answer(asked: Asked) -> Answer:
        methods.append(asked.method)
        return 200, told

    with serving(answer) as url, pytest.raises(ServiceError, match="does not answer as"):
        push(service, NAME, store=filled, to=url)
    assert methods == ["GET"]
    with serving(answer) as url, pytest.raises(ServiceError, match="does not answer as"):
        pull(service, NAME, store=filled, to=url)
