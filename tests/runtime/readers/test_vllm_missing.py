"""The reader `vllm` where vLLM is not installed; tests/on_vllm has it."""

from importlib.util import find_spec

import pytest

from hopscope.api import parts
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.readers import tiny


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_it_names_what_is_to_be_installed() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[vllm\]'"):
        parts.reader(f"vllm:{tiny.FOLDER},dtype=float32")
