"""What workers need of libraries, for them to fork from a process that has it."""

import torch  # noqa: F401
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: F401

from hopscope.lab.experiments import item_runner  # noqa: F401
from hopscope.runtime.generation import transformers_reader  # noqa: F401
