"""The authors' algorithm of the credit benchmark gives the product's credits."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hopscope.runtime.models.linear import multiplies
from hopscope.runtime.readers import tiny

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def parts() -> Iterator[dict[str, ModuleType]]:
    """The modules of the benchmark, by name, which find each other beside the script."""
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        names = ("authors", "bench", "random_nli", "runs")
        yield {name: import_module(f"credit_parts.{name}") for name in names}
    for name in set(sys.modules) - known:
        if name.startswith("credit_parts"):
            del sys.modules[name]


def test_both_sides_give_the_same_credit_from_the_same_samples(
    parts: dict[str, ModuleType], tmp_path: Path
) -> None:
    """Two contexts: each sample is compared with the gold both ways by the authors, each distinct
    one by the product."""
    bench: Any = parts["bench"].Benchmark(
        spec=f"hf:{tiny.FOLDER}",
        device="cpu",
        wall=False,
        limit=1,
        nli=parts["random_nli"].save(tmp_path / "nli", layers=1, width=64),
        folder=tmp_path,
    )
    retriever = parts["bench"].parts.corpus(parts["bench"].parts.HOPLAND)
    run = parts["runs"].deep(bench.questions()[0], retriever, steps=1, k=2)
    authors = parts["authors"]
    row = authors.compared(bench, authors.Authors(bench), [run], ("seper", "seper_hard"))
    assert row["greatest difference of credit"] < 1e-9
    assert row["contexts"] == 2
    assert row["entailment"]["authors' pairs"] > 2 * 10 * 2 >= row["entailment"]["our pairs"]
    approximations = row["approximations"]
    assert "tolerance .01" in approximations
    for precision, name in (("eight-bits", "eight bits"), ("bfloat16", "bfloat16")):
        assert (f"tolerance .01, {name}" in approximations) == multiplies(precision)
    for found in approximations.values():
        assert found["mean difference"] <= 0.01
        assert found["intervals that hold the exact credit"] == found["credits"] == 2
        assert found["pairs"] <= row["entailment"]["our pairs"]
    wide = [found for name, found in approximations.items() if name.startswith("tolerance .1,")]
    assert all(found["pairs"] < row["entailment"]["our pairs"] for found in wide)


def test_clusters_take_later_samples_from_earlier_ones(
    parts: dict[str, ModuleType],
) -> None:
    """By hand: A and B each mean the same as C, not as each other. C goes to B, which says the
    gold; so only B and C count."""
    authors, bench = parts["authors"], parts["bench"]
    same = {frozenset("AC"), frozenset("BC"), frozenset("BG")}

    class Judge:
        name = "judge"

        def classify(self, statements: Any) -> list[Any]:
            yes, no = authors.Probabilities(1.0, 0.0, 0.0), authors.Probabilities(0.0, 0.0, 1.0)
            return [yes if frozenset((s.premise, s.hypothesis)) in same else no for s in statements]

    side = object.__new__(authors.Authors)
    side._model = Judge()
    side.forget()
    samples = [
        authors.Generation(text=text, token_ids=(1,), logprobs=(0.0,), finish_reason="eos")
        for text in "ABC"
    ]
    assert side._hard("Which?", ["G"], samples) == pytest.approx(2 / 3)
    # A with B and C, B with C, and both firsts with the gold, each both ways.
    assert side.pairs == 2 * (2 + 1 + 2)
    assert bench.N == 10
