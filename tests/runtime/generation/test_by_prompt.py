"""Samples share their prompt's keys and values."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from hopscope.runtime.generation import by_prompt
from hopscope.runtime.generation.by_prompt import SHARING, SPARE
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import GenerationRequest

LONG = "Who? " * 150


def asking(text: str, **fields: Any) -> GenerationRequest:
    return GenerationRequest(prompt=prompts.short_answer(text), **fields)


def test_samples_that_part_need_memory_for_their_own_tokens_only() -> None:
    reader: Any = tiny.build()
    request = asking(LONG, n=SHARING, temperature=3.0, max_tokens=12)
    length = len(reader.prompt_ids(request))
    ongoing = reader.ongoing()
    ongoing.join([request])
    most = 0
    while ongoing.busy:
        ongoing.advance()
        sequences = ongoing._running._held._sequences
        most = max([most, *(len(each.rows) for each in sequences)])
        assert len(sequences) <= 1
        assert all(each._cache.columns <= length + 12 * SHARING for each in sequences)
    assert most > SHARING // 2
    assert reader.forwarded.tokens < length + 12 * SHARING


def test_what_follows_a_prompt_is_written_where_it_was_read() -> None:
    """No key moves, and the prefix that is kept is no copy."""
    reader: Any = tiny.build()
    request = asking(LONG, max_tokens=SPARE)
    ongoing = reader.ongoing()
    ongoing.join([request])
    places = set()
    while ongoing.busy:
        ongoing.advance()
        for each in ongoing._running._held._sequences:
            places.add(each._cache.layers[0].keys.untyped_storage().data_ptr())
    match = reader._decoder._prefill.tree.match(reader.prompt_ids(request))
    assert {run[0][0].untyped_storage().data_ptr() for run in match.runs} == places
    assert len(places) == 1


@pytest.mark.parametrize("n", [SHARING, SHARING + 1, 3 * SHARING])
def test_more_samples_share_copies(n: int) -> None:
    reader: Any = tiny.build()
    alone = tiny.build().generate([asking("Who?", temperature=3.0, seed=7, n=n, max_tokens=8)])
    ongoing = reader.ongoing()
    number = ongoing.join([asking("Who?", temperature=3.0, seed=7, n=n, max_tokens=8)])
    ongoing.advance()
    sequences = ongoing._running._held._sequences
    assert len(sequences) == -(-n // SHARING)
    drafts = [sum(len(row.drafts) for row in each.rows) for each in sequences]
    assert sum(drafts) <= n
    assert max(drafts) <= SHARING
    found: dict[int, Any] = {}
    while ongoing.busy:
        found |= ongoing.advance()
    assert [each.token_ids for each in found[number][0]] == [each.token_ids for each in alone[0]]
    assert reader.forwarded.passes <= 9


@pytest.mark.parametrize("prefixes", [256_000_000, 0])
def test_samples_for_which_there_is_no_memory_wait_unread(
    prefixes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy is made in vain, and those that waited share their prompt, too."""
    n, tokens = 20 * SHARING, 6
    request = asking(LONG, temperature=3.0, n=n, max_tokens=tokens)
    expected = tiny.build().generate([request])[0]
    length = len(tiny.build().prompt_ids(request))
    area = 3 * (length + SHARING * tokens)
    copied: list[int] = []

    def counted(cache: Any) -> Any:
        copied.append(cache.columns)
        return copy.deepcopy(cache)

    monkeypatch.setattr(by_prompt, "copy", SimpleNamespace(deepcopy=counted))
    reader: Any = tiny.build(max_batch_tokens=area, prefix_cache=prefixes)
    ongoing = reader.ongoing()
    number = ongoing.join([request])
    found: dict[int, Any] = {}
    while ongoing.busy:
        copied.clear()
        found |= ongoing.advance()
        assert sum(copied) <= area
    assert [each.token_ids for each in found[number][0]] == [each.token_ids for each in expected]
    assert reader.forwarded.passes <= 7 * (tokens + 1)
