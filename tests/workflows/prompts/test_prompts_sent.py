"""The default prompts, byte for byte as they were before they were files."""

import json

from tests.workflows.prompts.sent import RECORD, record


def test_every_prompt_is_as_recorded() -> None:
    recorded, now = json.loads(RECORD.read_text("utf-8")), json.loads(json.dumps(record()))
    assert now["sent"].keys() == recorded["sent"].keys()
    for name, requests in recorded["sent"].items():
        assert unfolded(now, name) == unfolded(recorded, name), name
        assert len(requests) == len(now["sent"][name])


def unfolded(all_: dict, name: str) -> list[object]:  # type: ignore[type-arg]
    """The requests with their texts in place."""
    return [
        each | {"messages": [(role, all_["texts"][at]) for role, at in each["messages"]]}
        for each in all_["sent"][name]
    ]
