"""Some of the shipped reader's figures on few questions; docs/evidence/reader.md has them all."""

from functools import cache
from importlib.resources import files

from hopscope.lab.hopland.cases import Case
from hopscope.lab.hopland.cases import cases as drawn
from hopscope.lab.hopland.evaluation import evaluate
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf, tiny

N = 60


@cache
def reader() -> Reader:
    return tiny.build()


@cache
def cases(hops: int) -> list[Case]:
    return drawn(hops, N)


def test_one_hop_among_five_passages_is_read() -> None:
    assert sum(evaluate.short(reader(), [(c.asked, c.full) for c in cases(1)])) >= 0.85 * N


def test_two_hops_are_reasoned_out() -> None:
    assert sum(evaluate.reasoned(reader(), [(c.asked, c.full) for c in cases(2)])) >= 0.75 * N


def test_without_the_gold_passage_the_gold_answer_is_rare() -> None:
    assert sum(evaluate.short(reader(), [(c.asked, c.bare) for c in cases(1)])) <= 0.2 * N


def test_belief_in_a_two_hop_answer_needs_both_passages() -> None:
    def belief(chosen: int | None) -> float:
        rows = [(c.asked, c.full if chosen is None else c.parts[chosen]) for c in cases(2)]
        return sum(evaluate.beliefs(reader(), rows)) / N

    both, first_missing, last_missing = belief(None), belief(0), belief(-1)
    assert both > 0.6
    assert max(first_missing, last_missing) < 0.3 * both


def test_the_smaller_reader_of_the_laboratory_reads_too_and_is_another() -> None:
    small = hf.build(model=str(files("hopscope.lab.hopland").joinpath("small")), device="cpu")
    rows = [(c.asked, c.full) for c in cases(1)]
    assert sum(evaluate.short(small, rows)) >= 0.85 * N
    assert evaluate.beliefs(small, rows) != evaluate.beliefs(reader(), rows)
