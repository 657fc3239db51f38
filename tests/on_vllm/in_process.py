"""Asks the reader `vllm` and prints what it says as JSON. Runs in the environment that has vLLM,
which has not all that pytest needs: `python in_process.py MODEL < requests`."""

import json
import sys

from hopscope.runtime.readers import vllm
from hopscope.runtime.types import GenerationRequest, ScoreRequest

if __name__ == "__main__":
    reader = vllm.build(model=sys.argv[1], dtype="float32", context=1024, compiled=False)
    asked = json.load(sys.stdin)
    requests = [GenerationRequest.model_validate(one) for one in asked["generate"]]
    scored = reader.score([ScoreRequest.model_validate(one) for one in asked["score"]])
    generated = reader.generate(requests)
    later = reader.more([r.model_copy(update={"n": 1}) for r in requests], first=1)  # type: ignore[attr-defined]
    told = {
        "name": reader.name,
        "generated": [[g.model_dump() for g in each] for each in generated],
        "later": [[g.model_dump() for g in each] for each in later],
        "scored": [one.model_dump() for one in scored],
    }
    print(json.dumps(told))
