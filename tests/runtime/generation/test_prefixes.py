"""What was read before is not read again, and changes no number."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from hopscope.api import parts
from hopscope.runtime.errors import UsageError
from hopscope.runtime.generation.caches import roomy
from hopscope.runtime.generation.prefill import PASS, UnreadSequence
from hopscope.runtime.generation.prefixes import NEARLY_ALL, Layers, PrefixTree
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, tiny
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Scored, ScoreRequest
from tests import models

QUESTION = "Where was the director of Alba born?"
EVIDENCE = tuple(
    Passage(title=f"Alba {i}", text=f"Alba {i} is a film directed by Bruno Costa in {1950 + i}.")
    for i in range(4)
)
SHAPES = {"llama": models.tiny_llama, "gpt2": models.tiny_gpt2, "mistral": models.tiny_mistral}


@pytest.fixture(scope="module", params=["tiny", *SHAPES])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A reader that keeps prefixes, and the same that keeps none."""
    if request.param == "tiny":
        return tiny.build(), tiny.build(prefix_cache=0)
    folder = str(SHAPES[request.param](tmp_path_factory.mktemp("model") / request.param))
    return hf.build(model=folder), hf.build(model=folder, prefix_cache=0)


@pytest.fixture
def llama(tmp_path: Any) -> Any:
    return hf.build(model=str(models.tiny_llama(tmp_path / "llama")))


def samples(evidence: Sequence[Passage], n: int = 4) -> GenerationRequest:
    prompt = prompts.short_answer(QUESTION, evidence)
    return GenerationRequest(prompt=prompt, n=n, temperature=1.0, max_tokens=6, seed=3)


def thought(evidence: Sequence[Passage], *thoughts: str) -> GenerationRequest:
    prompt = prompts.chain_of_thought(QUESTION, evidence, thoughts)
    return GenerationRequest(prompt=prompt, max_tokens=8)


def of_a_run(reader: Any) -> list[Generation | Scored]:
    """What a run of four steps and its meters ask for."""
    found: list[Generation | Scored] = []
    for step in range(1, 5):
        found += reader.generate([thought(EVIDENCE[:step], *["Alba is a film."] * (step - 1))])[0]
    contexts = [EVIDENCE[:step] for step in range(5)] + [EVIDENCE[1:], EVIDENCE[1:3], EVIDENCE[::2]]
    for generations in reader.generate([samples(context) for context in contexts]):
        found += generations
    found += reader.more([samples(EVIDENCE, 2)], first=4)[0]
    asked = [
        ScoreRequest(prompt=samples(context).prompt, continuation=text)
        for context in contexts
        for text in ("Lisbon", "Bruno Costa in Lisbon", "L")
    ]
    return found + reader.score(asked)


def ids_of(reader: Any, request: GenerationRequest) -> list[int]:
    ids: list[int] = reader._renderer.prompt_ids(request.prompt)
    return ids


@contextmanager
def forwarding(reader: Any) -> Iterator[list[int]]:
    """Tokens forwarded and reused inside."""
    counts: list[int] = []
    before = reader.forwarded
    yield counts
    after = reader.forwarded
    counts += [after.tokens - before.tokens, after.reused - before.reused]


def test_numbers_are_those_of_a_reader_that_keeps_nothing(pair: Any) -> None:
    """A wrong cut, mask or position shows here, of rows of different length in one pass too."""
    keeping, forgetful = pair
    ours, theirs = of_a_run(keeping), of_a_run(forgetful)
    assert forgetful.forwarded.reused == 0
    assert keeping.forwarded.tokens < 0.5 * forgetful.forwarded.tokens
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.entropies == pytest.approx(other.entropies, abs=1e-4)


def test_a_longer_evidence_is_read_from_where_it_goes_on(llama: Any) -> None:
    first, then = samples(EVIDENCE[:2], 1), thought(EVIDENCE[:3])
    one = GenerationRequest(prompt=first.prompt, max_tokens=1)
    other = GenerationRequest(prompt=then.prompt, max_tokens=1)
    with forwarding(llama) as cold:
        llama.generate([one])
    assert cold == [len(ids_of(llama, first)), 0]
    shared = len(ids_of(llama, samples(EVIDENCE[:2]))) - len(ids_of(llama, samples(())))
    with forwarding(llama) as warm:
        llama.generate([other])
    length = len(ids_of(llama, then))
    assert sum(warm) == length
    assert warm[1] >= shared
    with forwarding(llama) as again:
        llama.generate([other])
    assert again == [1, length - 1]


def test_contexts_of_one_call_share_what_they_begin_with(llama: Any) -> None:
    """Forwarded tokens over the distinct beginnings of all prompts."""
    asked = [
        GenerationRequest(prompt=samples(EVIDENCE[:step]).prompt, max_tokens=1) for step in range(5)
    ]
    with forwarding(llama) as counted:
        llama.generate(asked)
    prefixes = {
        tuple(ids[:end])
        for ids in (ids_of(llama, request) for request in asked)
        for end in range(1, len(ids) + 1)
    }
    assert counted[0] <= 1.3 * len(prefixes)


def test_what_nobody_waits_for_is_read_with_the_others(llama: Any) -> None:
    """A pass for each costs more than the arithmetic in it."""
    leader = tuple(range(3, 103))
    follower, apart = (*leader[:80], *range(200, 210)), tuple(range(250, 262))
    with torch.inference_mode():
        made = llama._decoder._prefill.read(
            [UnreadSequence(apart), UnreadSequence(leader), UnreadSequence(follower)]
        )
    assert [each.members for each in made] == [[1], [0, 2]]
    assert llama.forwarded.tokens == 100 + 2 * 12


def test_few_shared_tokens_are_read_again(llama: Any) -> None:
    """A pass that begins at the first token needs no mask, which doubles the work of attention."""
    prefill, first = llama._decoder._prefill, tuple(range(3, 103))
    with torch.inference_mode():
        prefill.read([UnreadSequence(first)])
        for shared, counts in ((PASS, [PASS + 60, 0]), (PASS + 1, [60, PASS + 1])):
            other = tuple(range(100 + shared, 160 + shared))
            with forwarding(llama) as counted:
                [made] = prefill.read([UnreadSequence((*first[:shared], *other))])
            assert (counted, made.cache.tokens) == (counts, shared + 60)


def test_a_split_holds_little_more_memory_than_its_tokens() -> None:
    """Views of large tensors would keep what the bound has dropped."""

    def cut(start: int, stop: int) -> Layers:
        return [(torch.zeros(1, stop - start, 1), torch.zeros(1, stop - start, 1))]

    tree = PrefixTree(1_000_000)
    whole = tuple(range(1000))
    tree.keep(whole, cut)
    for at in range(950, 0, -50):
        tree.keep((*whole[:at], 5000 + at), cut)
    held = {
        side.untyped_storage().data_ptr(): side.untyped_storage().nbytes()
        for run in tree.match(whole).runs
        for layer in run
        for side in layer
    }
    assert sum(held.values()) <= NEARLY_ALL * 1000 * 8


def test_the_last_used_are_kept_within_the_bound() -> None:
    """Hand-made keys of two layers, one head and one coordinate: 16 bytes a token."""

    def cut(start: int, stop: int) -> Layers:
        run = torch.arange(start, stop, dtype=torch.float32).reshape(1, -1, 1)
        return [(run, -run), (run + 100, -run)]

    tree = PrefixTree(16 * 10)
    tree.keep((1, 2, 3, 4, 5, 6), cut)
    tree.keep((1, 2, 3, 9), cut)
    assert tree.size == 16 * 7
    found = tree.match((1, 2, 3, 9, 9))
    assert found.tokens == 4
    keys = torch.cat([run[1][0] for run in found.runs], dim=1)[:, :4]
    assert keys.flatten().tolist() == [100, 101, 102, 103]
    tree.keep((7, 7, 7, 7), cut)  # room for three more tokens: 4 5 6 was used longest ago
    assert tree.size == 16 * 8
    assert [tree.match(ids).tokens for ids in ((1, 2, 3, 4), (1, 2, 3, 9), (7, 7))] == [3, 4, 2]
    tree.keep(tuple(range(100, 120)), cut)  # larger than the bound
    assert tree.size <= 16 * 10
    tree.clear()
    assert (tree.size, tree.match((1, 2)).tokens) == (0, 0)


def test_a_small_bound_changes_no_number(pair: Any) -> None:
    keeping, forgetful = pair
    name = getattr(keeping._tokenizer, "name_or_path", str(tiny.FOLDER))
    tight: Any = hf.build(model=name, prefix_cache=100_000, max_batch_tokens=300)
    for one, other in zip(of_a_run(tight), of_a_run(forgetful), strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert tight._decoder._prefill.tree.size <= 100_000


def test_what_was_asked_before_changes_no_bit_when_it_must_not(llama: Any) -> None:
    try:
        torch.use_deterministic_algorithms(True)
        alone = llama.generate([samples(EVIDENCE)])
        llama.generate([thought(EVIDENCE[:2]), samples(EVIDENCE[:3])])
        assert llama.generate([samples(EVIDENCE)]) == alone
    finally:
        torch.use_deterministic_algorithms(False)


def test_the_bound_is_an_option_of_the_reader() -> None:
    reader: Any = parts.reader("tiny,prefix_cache=2MB")
    assert reader._decoder._prefill.tree.limit == 2_000_000
    with pytest.raises(UsageError, match="prefix_cache=much"):
        parts.reader("tiny,prefix_cache=much")


def test_a_short_prompt_that_may_write_much_has_room_beside_a_long_one(
    llama: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all keys and values would be copied for every token beyond."""
    long, short = samples(EVIDENCE), samples(())
    asked = [long, short.model_copy(update={"max_tokens": 24})]
    alone = [llama.generate([request])[0] for request in asked]
    assert max(len(each.token_ids) for each in alone[1]) > 6

    def never(*_: object) -> None:
        raise AssertionError("not enough room")

    monkeypatch.setattr(roomy, "_widened", never)
    together = llama.generate(asked)
    assert [[g.token_ids for g in each] for each in together] == [
        [g.token_ids for g in each] for each in alone
    ]
