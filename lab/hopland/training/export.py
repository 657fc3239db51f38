"""Export a checkpoint as the folder of the shipped reader.

    python -m hopscope.lab.hopland.training.export --run DIR [--out FOLDER] [--temperature T]

The weights are the running average; a temperature other than 1 divides the last norm's weights and
so all logits (Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks, 2017, section
4.2). It writes `config.json`, `generation_config.json`, `model.safetensors` (float32) and the
tokenizer with its chat template, for `AutoModelForCausalLM.from_pretrained(FOLDER)`,
`AutoTokenizer.from_pretrained(FOLDER)` and vLLM. The model card is written by hand from the figures
of `evaluate`.
"""

import argparse
from pathlib import Path

import torch
from transformers import GenerationConfig, LlamaForCausalLM

from hopscope.lab.hopland.training import tokenizer
from hopscope.lab.hopland.training.train import config
from hopscope.runtime.readers import hf


def export(run: Path, out: Path, *, temperature: float = 1.0) -> None:
    """Write the reader of a training run's last checkpoint, its logits over the temperature."""
    learned = tokenizer.load(run / "tokenizer")
    weights = torch.load(run / "checkpoint.pt", weights_only=True)["averaged"]
    layers = 1 + max(int(name.split(".")[2]) for name in weights if ".layers." in name)
    width = weights["model.embed_tokens.weight"].shape[1]
    model = LlamaForCausalLM(config(learned, layers=layers, width=width))
    model.load_state_dict(weights)
    with torch.no_grad():
        model.model.norm.weight /= temperature
    model.generation_config = GenerationConfig(
        bos_token_id=learned.bos_token_id,
        eos_token_id=learned.eos_token_id,
        pad_token_id=learned.pad_token_id,
    )
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(str(out))
    tokenizer.save(learned, out)
    (out / "model.safetensors").chmod(0o644)


def main() -> None:
    """Parse the command line and export."""
    parser = argparse.ArgumentParser(description="Export the trained Hopland reader.")
    parser.add_argument("--run", type=Path, required=True, help="the --out of training")
    parser.add_argument("--out", type=Path, default=Path(hf.__file__).parent / "hopland")
    parser.add_argument("--temperature", type=float, default=1.0, help="as `calibrate` finds it")
    given = parser.parse_args()
    if given.temperature <= 0:
        parser.error("--temperature of more than 0 is needed")
    if not (given.run / "checkpoint.pt").is_file():
        parser.error(f"--run: {given.run} holds no checkpoint.pt")
    export(given.run, given.out, temperature=given.temperature)


if __name__ == "__main__":
    main()
