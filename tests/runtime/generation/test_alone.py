"""With `--deterministic` a number depends on its own input alone, in half precision, too.

In bfloat16 the rows beside a sample and what was read before decide its second or third digit, and
so now and then its tokens (docs/evidence/half_precision.md), so a batch would show there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hopscope.runtime.models.batches import in_batches
from hopscope.runtime.ports import BranchRequest
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest, Passage, ScoreRequest
from tests import models

EVIDENCE = [
    Passage(title="Alba", text="Alba is a film directed by Bruno Costa."),
    Passage(title="Bruno Costa", text="Bruno Costa was born in Lisbon in 1951."),
]
PROMPTS = [
    prompts.short_answer("Where was the director of Alba born?", EVIDENCE),
    prompts.short_answer("Where was the director of Alba born?", EVIDENCE[:1]),
    prompts.short_answer("Who?"),
]
ARCHITECTURES = [models.tiny_llama, models.tiny_gpt2, models.tiny_mistral, models.tiny_qwen2]


@pytest.fixture
def _deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # CUDA asks for it
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module", params=ARCHITECTURES, ids=lambda make: make.__name__)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = request.param(tmp_path_factory.mktemp("model") / request.param.__name__)
    return made


def opened(folder: Path, **options: Any) -> Any:
    return hf.build(model=str(folder), dtype="bfloat16", **options)


def sampled(n: int) -> list[GenerationRequest]:
    """Of each prompt so many samples; and one reply that is not sampled."""
    fields: dict[str, Any] = {"max_tokens": 10, "stop": ("\n",)}
    drawn = [GenerationRequest(prompt=p, n=n, temperature=1.0, seed=1, **fields) for p in PROMPTS]
    return [*drawn, GenerationRequest(prompt=PROMPTS[1], **fields)]


@pytest.mark.usefixtures("_deterministic")
def test_samples_in_half_precision_are_the_same_in_any_company(folder: Path) -> None:
    """Others at the same time, fewer or later samples, what was read before, the room for rows."""
    reader = opened(folder)
    together = reader.generate(sampled(6))
    assert [reader.generate([request])[0] for request in sampled(6)] == together
    fewer = [[g.model_copy(update={"usage": None}) for g in some] for some in together]
    for first, last in ((0, 2), (2, 6)):
        some = reader.more(sampled(last - first)[:3], first=first)
        for own, whole in zip(some, fewer, strict=False):
            assert [g.model_copy(update={"usage": None}) for g in own] == whole[first:last]
    tight = opened(folder, max_batch_tokens=1, prefix_cache=0)
    assert tight.generate(sampled(6)[::-1])[::-1] == together


@pytest.mark.usefixtures("_deterministic")
def test_likelihoods_and_branches_in_half_precision_are_the_same_in_any_company(
    folder: Path,
) -> None:
    reader = opened(folder)
    given = [(40,), (40, 41, 42), (43, 44), tuple(range(50, 60))]
    scores = [ScoreRequest(prompt=p, token_ids=ids) for p in PROMPTS for ids in given]
    assert [reader.score([request])[0] for request in scores] == reader.score(scores)
    asked = [BranchRequest(sampled(1)[0].model_copy(update={"prompt": p}), ids)
             for p in PROMPTS for ids in ((), *given[:3], (45, 46))]  # fmt: skip
    assert [reader.branch([request])[0] for request in asked] == reader.branch(asked)


def test_the_rule_holds_for_whatever_is_computed_in_batches() -> None:
    seen: list[list[str]] = []

    def compute(batch: list[str]) -> list[int]:
        seen.append(batch)
        return [len(each) for each in batch]

    def asked() -> list[list[str]]:
        seen.clear()
        texts = ["aa", "b", "aa", "cc", "b"]
        assert in_batches(texts, compute, width=len, area=6) == [2, 1, 2, 2, 1]
        return sorted(seen)

    assert asked() == [["aa", "cc", "b"]]
    torch.use_deterministic_algorithms(True)
    try:
        assert asked() == [["aa"], ["b"], ["cc"]]
    finally:
        torch.use_deterministic_algorithms(False)
