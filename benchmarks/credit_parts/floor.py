"""The reader against its floor: the necessary tokens, and bare forward passes."""

from typing import Any

import torch

from credit_parts.bench import Benchmark, Row, timed
from credit_parts.contexts import contexts
from credit_parts.passes import observed, replayed, weights_of
from credit_parts.product import Recording
from credit_parts.runs import trajectories
from credit_parts.straightforward import Clock
from hopscope.runtime.types import ForwardCounts, Generation, GenerationRequest

REPLAYS, PEAKS = 3, 5
"""Times of which the best counts: of the passes, and of the machine."""


def measure(bench: Benchmark) -> Row:
    runs = trajectories(bench)
    reader = Recording(bench.reader())
    model = weights_of(reader.reader)
    asked = [list(contexts(found, every=False).values()) for found in runs]

    def generated() -> Clock:
        reader.reader._decoder._prefill.tree.clear()
        return timed(lambda: [reader.generate(requests) for requests in asked])

    with observed(model) as passes:
        first = generated()
    forwarded: ForwardCounts = reader.reader.forwarded
    whole = min((first, *(generated() for _ in range(REPLAYS - 1))), key=bench.seconds)
    bare, copying = (
        min((replayed(model, passes, roomy=roomy) for _ in range(REPLAYS)), key=bench.seconds)
        for roomy in (True, False)
    )
    needed = tokens_needed(reader.reader, reader.samples)
    computing = sum(p.numel() for name, p in model.named_parameters() if "embed" not in name)
    done = 2 * computing * forwarded.tokens
    best = peak(bench)
    return {
        "runs": len(runs),
        "passes": len(passes),
        "tokens forwarded": forwarded.tokens,
        "tokens needed": needed,
        "tokens reused": forwarded.reused,
        "forwarded over needed": forwarded.tokens / needed,
        "seconds": bench.seconds(whole),
        "seconds of the bare passes": bench.seconds(bare),
        "time over bare passes": bench.ratio(whole, bare),
        "likewise, with transformers' cache": bench.ratio(whole, copying),
        "share of peak": done / bench.seconds(whole) / best,
        "share of peak, bare passes": done / bench.seconds(bare) / best,
    }


def tokens_needed(reader: Any, samples: dict[GenerationRequest, list[Generation]]) -> int:
    """The least tokens through the model: common beginnings of sequences once, and of each sample
    all but its last token."""
    sequences = []
    for request, drawn in samples.items():
        prompt = reader._renderer.prompt_ids(request.prompt)
        for sample in drawn:
            written = list(sample.token_ids)
            sequences.append(
                prompt + (written[:-1] if sample.finish_reason == "length" else written)
            )
    needed = 0
    last: list[int] = []
    for sequence in sorted(sequences):
        shared = 0
        while shared < min(len(last), len(sequence)) and last[shared] == sequence[shared]:
            shared += 1
        needed += len(sequence) - shared
        last = sequence
    return needed


def peak(bench: Benchmark) -> float:
    """The machine's multiplications and additions per second in single precision."""
    side = 2048 if bench.device == "cpu" else 8192
    square = torch.rand(side, side, device=bench.device)
    took = (timed(lambda: (square @ square)[0, 0].item()) for _ in range(PEAKS))
    return 2 * side**3 / min(map(bench.seconds, took))
