"""Training: what a batch teaches, where batches come from, going on from a checkpoint."""

import multiprocessing
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.training import blocks, export, feeding, guidance, tokenizer, train
from hopscope.lab.hopland.training.blocks import Batch
from hopscope.lab.hopland.training.curriculum import STAGES, TRAINED
from hopscope.lab.hopland.training.losses import Average, Losses, copying, losses
from hopscope.lab.hopland.training.train import Trainer
from tests.lab.hopland.training.tokenizers_learned import SMALL, learned, longer


def trainer(out: Path, *, known: PreTrainedTokenizerFast | None = None) -> Trainer:
    """One that grows the smaller reader.

    Args:
        known: its tokenizer, as an earlier trainer has left it there; by default it makes its own.
    """
    if known is not None:
        tokenizer.save(known, out / "tokenizer")
    return Trainer(out, minutes=10, seed=3, layers=5, width=192, rate=1e-3, start=SMALL)


@cache
def batch() -> Batch:
    place = multiprocessing.get_context("spawn").Value("i", TRAINED)
    source, learned = feeding.examples(5, place), tokenizer.load(SMALL)
    packed = [
        p for _ in range(6) for p in blocks.pack(learned, [next(source)[0]], passage_weight=0.0)
    ]
    return blocks.collate(packed[:2])


def copied(seed: int) -> Batch:
    return copying(torch.arange(8, 200), 5, torch.Generator().manual_seed(seed))


class Enough(Exception):
    pass


class Bounded(Queue[Batch]):
    """Stops whoever fills it when it is full."""

    def put(self, item: Batch, block: bool = True, timeout: float | None = None) -> None:
        if self.full():
            raise Enough
        super().put(item, block, timeout)


def fed(seed: int, n: int) -> list[Batch]:
    place = multiprocessing.get_context("spawn").Value("i", TRAINED)
    queue = Bounded(maxsize=n)
    threads = torch.get_num_threads()
    with pytest.raises(Enough):
        feeding.feed(SMALL, seed, place, queue)  # type: ignore[arg-type]
    torch.set_num_threads(threads)
    return list(queue.queue)


def test_a_batch_teaches_the_weighted_surprise_of_its_own_tokens(tmp_path: Path) -> None:
    model = trainer(tmp_path).model.eval()
    found = losses(model, batch(), guidance.through)
    with torch.inference_mode():
        _, hidden = guidance.states(model, batch())
        logits = model.lm_head(hidden[:, :-1])
    each = functional.cross_entropy(
        logits.flatten(0, 1), batch().ids[:, 1:].flatten(), reduction="none"
    )
    weights = batch().weights[:, 1:].flatten()
    expected = float((each * weights).sum() / weights.sum())
    assert float(found.answers.detach()) == pytest.approx(expected, rel=0.02)  # bfloat16
    assert 0 <= found.right <= 1
    assert float(found.pointing.detach()) > 0


def test_a_running_average_starts_at_the_first_value_and_forgets() -> None:
    def one(value: float) -> Losses:
        return Losses(torch.tensor(value), torch.tensor(2 * value), value / 10)

    average = Average(0.5)
    average.add(one(4.0))
    assert average.values == {"answers": 4.0, "pointing": 8.0, "right": pytest.approx(0.4)}
    assert not average.settled
    average.add(one(1.0))
    assert average.values["answers"] == pytest.approx((0.25 * 4 + 0.5 * 1) / 0.75)
    for _ in range(20):
        average.add(one(1.0))
    assert average.settled
    assert average.values["answers"] == pytest.approx(1.0, abs=1e-4)


def test_batches_are_as_large_as_allowed_and_the_same_for_the_same_seed() -> None:
    batches, again, others = fed(3, 2), fed(3, 2), fed(4, 2)
    for one, other in zip(batches, again, strict=True):
        assert torch.equal(one.ids, other.ids)
        assert torch.equal(one.weights, other.weights)
    assert any(a.ids.shape != b.ids.shape for a, b in zip(batches, others, strict=True)) or any(
        not torch.equal(a.ids, b.ids) for a, b in zip(batches, others, strict=True)
    )
    for made in batches:
        assert len(made.ids) == 1 or made.ids.numel() <= feeding.BATCH_TOKENS
        assert (made.weights > 0).any()


def test_batches_run_out_when_the_process_that_makes_them_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train, "PATIENCE", 0.01)
    spawn = multiprocessing.get_context("spawn")
    feeder = spawn.Process(target=os._exit, args=(7,))
    feeder.start()
    feeder.join()
    with pytest.raises(SystemExit, match=r"exit code 7; start the command again"):
        next(train.fed(spawn.Queue(), feeder))


def same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[n], right[n]) for n in left)


def test_training_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole = trainer(tmp_path, known=longer())
    assert whole.place == TRAINED
    whole.learn(copied(1))
    whole.learn(batch())
    whole.seconds = 4.0
    whole.save()
    saved = {name: value.clone() for name, value in whole.model.state_dict().items()}
    gone_on = trainer(tmp_path)
    assert (gone_on.step, gone_on.tokens) == (2, whole.tokens)
    assert (gone_on.seconds, gone_on.place) == (4.0, TRAINED)
    assert same(gone_on.model.state_dict(), saved)
    for made in (whole, gone_on):
        made.learn(copied(2))
    assert same(whole.model.state_dict(), gone_on.model.state_dict())
    assert same(whole.average.state_dict(), gone_on.average.state_dict())
    assert not same(whole.model.state_dict(), saved)


def test_what_is_exported_is_the_running_average(tmp_path: Path) -> None:
    made = trainer(tmp_path, known=longer())
    for seed in range(2):
        made.learn(copied(seed))
    made.save()
    export.export(tmp_path, tmp_path / "reader")
    loaded = LlamaForCausalLM.from_pretrained(str(tmp_path / "reader"), dtype=torch.float32)
    assert same(loaded.state_dict(), made.average.state_dict())
    assert not same(loaded.state_dict(), made.model.state_dict())
    assert tokenizer.load(tmp_path / "reader").get_vocab() == made.learned.get_vocab()


def test_a_temperature_divides_the_logits(tmp_path: Path) -> None:
    made = trainer(tmp_path, known=longer())
    made.save()
    export.export(tmp_path, tmp_path / "sure", temperature=0.5)
    sure = LlamaForCausalLM.from_pretrained(str(tmp_path / "sure"), dtype=torch.float32)
    ids = torch.arange(10, 40)[None]
    with torch.inference_mode():
        assert torch.allclose(sure(ids).logits, 2 * made.average.eval()(ids).logits, atol=1e-4)


def test_copying_that_does_not_form_says_so(tmp_path: Path) -> None:
    tokenizer.save(learned(), tmp_path / "tokenizer")
    made = Trainer(tmp_path, minutes=0.001, seed=0, layers=2, width=64, rate=0.0, start=None)
    with pytest.raises(SystemExit, match="copying did not form in the time given"):
        made.copy()


def test_a_stage_ends_in_its_time() -> None:
    shares = [stage.latest for stage in STAGES]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert STAGES[-1].mastered is None
