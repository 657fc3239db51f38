"""The reader behind torch.compile: the same text, nearly the same numbers, another name."""

from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.runtime.prompting import prompts
from hopscope.runtime.types import GenerationRequest
from tests.models import tiny_llama

# The warnings are torch's, about itself.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def test_the_name_says_that_numbers_are_rounded_otherwise(tmp_path: Path) -> None:
    """Nothing is compiled before something is computed."""
    folder = tiny_llama(tmp_path / "model")
    eager, compiled = (parts.reader(f"hf:{folder},compiled={given}") for given in ("no", "yes"))
    assert compiled.name == f"{eager.name}:compiled"


@pytest.mark.slow
def test_a_compiled_model_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer: the compiler takes seconds for each."""
    # The compiler's own cache may hold what it made for other instructions of the processor.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    folder = tiny_llama(tmp_path / "model", num_hidden_layers=1)
    eager, compiled = (parts.reader(f"hf:{folder},compiled={given}") for given in ("no", "yes"))
    request = GenerationRequest(
        prompt=prompts.short_answer("Who?"), n=3, temperature=1.0, max_tokens=6, seed=1
    )
    [one], [other] = eager.generate([request]), compiled.generate([request])
    assert [g.token_ids for g in one] == [g.token_ids for g in other]
    for a, b in zip(one, other, strict=True):
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
