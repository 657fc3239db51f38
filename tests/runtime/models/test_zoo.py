"""Every architecture of the zoo, read by the reader `hf`, against a forward pass of the whole text
without cache, padding or batch: what docs/readers.md promises of each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from hopscope.runtime.models.architecture import KNOWN
from hopscope.runtime.ports import BranchRequest
from hopscope.runtime.readers import hf
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest
from tests import zoo
from tests.runtime.readers.test_hf_reader import PROMPTS

TOLERANCE = 1e-4
SAMPLES = (1, 4, 2, 3)
TOKENS = (8, 6, 10, 4)


class Reference:
    """What the model says of a text that it reads whole and alone."""

    def __init__(self, reader: Any) -> None:
        self._model = reader._decoder._model
        self._prompts = [reader._renderer.prompt_ids(prompt) for prompt in PROMPTS]
        self._known: dict[tuple[int, ...], torch.Tensor] = {}

    def after(self, prompt: int, tokens: Sequence[int]) -> torch.Tensor:
        """Log-probabilities of each of the tokens and of the one after them, (token, choice)."""
        ids = (*self._prompts[prompt], *tokens)
        if ids not in self._known:
            with torch.inference_mode():
                logits = self._model(torch.tensor([ids]), use_cache=False).logits[0]
            self._known[ids] = torch.log_softmax(logits.double(), dim=-1)
        return self._known[ids][-len(tokens) - 1 :]

    def agrees(self, prompt: int, said: Generation | Scored) -> bool:
        """Whether all its numbers are right."""
        logprobs = self.after(prompt, said.token_ids)
        entropies = torch.special.entr(logprobs.exp()).sum(dim=-1)
        given = [float(row[token]) for row, token in zip(logprobs, said.token_ids, strict=False)]
        return list(said.logprobs) == pytest.approx(given, abs=TOLERANCE) and list(
            said.entropies
        ) == pytest.approx(entropies[: len(given)].tolist(), abs=TOLERANCE)


def sampled(i: int, **options: Any) -> GenerationRequest:
    """A request for samples of prompt `i`."""
    usual = {"n": SAMPLES[i], "max_tokens": TOKENS[i], "temperature": 1.0, "seed": 7}
    return GenerationRequest(prompt=PROMPTS[i], **{**usual, **options})


def load(folder: Path, name: str) -> Callable[..., Any]:
    if zoo.missing(name):
        pytest.skip(f"this transformers has no {name}")
    made = zoo.save(folder / name, zoo.configuration(name))
    return lambda **options: hf.build(model=str(made), device="cpu", **options)


@pytest.mark.parametrize("name", zoo.RIGHT)
def test_kept_and_batched_it_says_what_the_whole_text_says(name: str, tmp_path: Path) -> None:
    """Prompts of unequal lengths in one batch, one after the other with what was kept of earlier
    ones, more samples, given texts and branches."""
    build = load(tmp_path, name)
    reader = build()
    reference = Reference(reader)
    batch = reader.generate([sampled(i) for i in range(len(PROMPTS))])
    for i, samples in enumerate(batch):
        assert len(samples) == SAMPLES[i]
        assert all(reference.agrees(i, sample) for sample in samples)
    again = [reader.generate([sampled(i)])[0] for i in range(len(PROMPTS))]
    for i, samples in enumerate(again):
        assert [s.token_ids for s in samples] == [s.token_ids for s in batch[i]]
        assert all(reference.agrees(i, sample) for sample in samples)
    for i, samples in enumerate(reader.more([sampled(0), sampled(1)], first=4)):
        assert all(reference.agrees(i, sample) for sample in samples)
    asked = [
        ScoreRequest(prompt=prompt, token_ids=samples[0].token_ids or (5, 6, 7))
        for prompt, samples in zip(PROMPTS, batch, strict=True)
    ]
    for i, scored in enumerate(reader.score(asked)):
        assert reference.agrees(i, scored)
    begun = [(), (40,), (41,), (40, 42)]
    branches = reader.branch([BranchRequest(sampled(2), tokens, 1e-6) for tokens in begun])
    for tokens, found in zip(begun, branches, strict=True):
        right = reference.after(2, tokens)[-1]
        assert found
        assert all(abs(float(right[b.token_id]) - b.logprob) < TOLERANCE for b in found)


@pytest.mark.parametrize("name", ["gemma4_text", "llama", "qwen3_next"])
def test_without_prefixes_it_says_the_same(name: str, tmp_path: Path) -> None:
    reader = load(tmp_path, name)(prefix_cache=0)
    reference = Reference(reader)
    batch = reader.generate([sampled(i) for i in range(len(PROMPTS))])
    assert all(reference.agrees(i, sample) for i, samples in enumerate(batch) for sample in samples)


def test_the_reader_knows_the_architectures_of_the_zoo() -> None:
    """What is not compared here is compared when it is loaded."""
    assert set(zoo.RIGHT) == KNOWN
    assert len(zoo.RIGHT) > 40


def test_the_documentation_names_them() -> None:
    text = (Path(__file__).parents[3] / "docs" / "readers.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| kind | architectures")
    rows = [line.split("|")[2] for line in table.partition("\n\n")[0].splitlines()[2:]]
    assert sorted(name for row in rows for name in row.split()) == sorted(zoo.RIGHT)
    assert f"each of {len(zoo.RIGHT)} architectures" in text


def test_the_zoo_would_see_a_wrong_position(tmp_path: Path) -> None:
    """Positions that count the padding change what a model with absolute positions says."""
    reader = load(tmp_path, "gpt2")()
    reader._decoder._forwarder._takes_positions = False
    reference = Reference(reader)
    batch = reader.generate([sampled(i) for i in range(len(PROMPTS))])
    assert not all(
        reference.agrees(i, sample) for i, samples in enumerate(batch) for sample in samples
    )
