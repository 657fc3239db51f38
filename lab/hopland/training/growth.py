"""A larger reader that begins with the weights of a smaller one.

Tokens that the smaller one lacks begin as the mean of the tokens that spell them there. Layers that
it lacks follow its first two, where copying is formed, as copies of the layer before them with a
zero output. So at first both give the same replies.
"""

from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.training import tokenizer

BEHIND = 2


@torch.no_grad()
def grow(model: LlamaForCausalLM, learned: PreTrainedTokenizerFast, start: Path) -> None:
    """Give the model the weights of the reader in a folder, of the same width and fewer layers.

    Raises:
        ValueError: it has another width or more layers.
    """
    small = LlamaForCausalLM.from_pretrained(str(start), dtype=torch.float32)
    spelled = tokenizer.load(start)
    more = model.config.num_hidden_layers - small.config.num_hidden_layers
    if more < 0 or model.config.hidden_size != small.config.hidden_size:
        raise ValueError(f"{start} has another width or more layers than what is to be trained")
    embeddings = small.model.embed_tokens.weight
    known = spelled.get_vocab()
    for token, place in learned.get_vocab().items():
        text = learned.convert_tokens_to_string([token])
        parts = [known[token]] if token in known else spelled(text).input_ids
        model.model.embed_tokens.weight[place] = embeddings[parts].mean(0)
    model.model.norm.load_state_dict(small.model.norm.state_dict())
    layers = list(small.model.layers)
    for place, layer in enumerate(model.model.layers):
        new = BEHIND <= place < BEHIND + more
        source = place if place < BEHIND else max(BEHIND - 1, place - more)
        layer.load_state_dict(layers[source].state_dict())
        if new:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
