"""The reader over vLLM's engine: tokens in, tokens and their distributions out.

Each sample is a request of its own with a seed of its own, so neither its siblings nor the batch
change what is drawn, as far as the engine's arithmetic does not depend on the batch. Scored tokens
are asked for as the ones that are generated next, one request each, since what vLLM tells of the
tokens of a prompt was stale in some versions; its prefix cache computes the prompt once.
"""

import threading
from collections.abc import Sequence
from typing import Any, Literal

import vllm
from vllm.platforms import current_platform

from hopscope.runtime.errors import ContextOverflow
from hopscope.runtime.readers import _vocabulary
from hopscope.runtime.readers._checkpoint import Checkpoint
from hopscope.runtime.readers._choices import entropy
from hopscope.runtime.readers._draft import Draft
from hopscope.runtime.readers._loading import refusal
from hopscope.runtime.readers._sampling import stream_key
from hopscope.runtime.readers._transformers import failures
from hopscope.runtime.readers._vocabulary import Vocabulary
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest, Usage


class VllmReader:
    """A causal language model. Threads may share it; one computes at a time."""

    def __init__(
        self, engine: Any, vocabulary: Vocabulary, *, name: str, alternatives: int | Literal["all"]
    ) -> None:
        self.name = name
        self._engine = engine
        self._vocabulary = vocabulary
        self._context: int = engine.llm_engine.model_config.max_model_len
        self._alternatives = alternatives
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request; see the port."""
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples from the `first` on; see the port. The prompt is counted again."""
        with self._lock, failures(self.name):
            drafts: list[list[Draft]] = []
            prompts: list[list[int]] = []
            params: list[Any] = []
            for request in requests:
                prompt = self._vocabulary.renderer.prompt_ids(request.prompt)
                self._check(prompt, request.max_tokens)
                indices = range(first, first + request.n)
                drafts.append([self._draft(request, i, prompt, first) for i in indices])
                prompts += [prompt] * request.n
                params += [self._drawing(request, i, prompt) for i in indices]
            outputs = iter(self._run(prompts, params))
            for draft in (draft for samples in drafts for draft in samples):
                self._write(draft, next(outputs))
            return [[self._marked(draft.generation()) for draft in samples] for samples in drafts]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        with self._lock, failures(self.name):
            work = [self._vocabulary.given(request) for request in requests]
            for prompt, given in work:
                self._check([*prompt, *given], 0)
            steps = [
                ([*prompt, *given[:at]], token)
                for prompt, given in work
                for at, token in enumerate(given)
            ]
            params = [
                vllm.SamplingParams(
                    temperature=0.0,
                    max_tokens=1,
                    allowed_token_ids=[token],
                    logprobs=self._logprobs,
                    detokenize=False,
                )
                for _, token in steps
            ]
            outputs = iter(self._run([prompt for prompt, _ in steps], params))
            return [
                self._scored(prompt, given, [next(outputs).logprobs[0] for _ in given])
                for prompt, given in work
            ]

    @property
    def _logprobs(self) -> int:
        return -1 if self._alternatives == "all" else self._alternatives

    def _run(self, prompts: list[list[int]], params: list[Any]) -> list[Any]:
        """The output of each prompt."""
        if not prompts:
            return []
        asked = [{"prompt_token_ids": prompt} for prompt in prompts]
        return [one.outputs[0] for one in self._engine.generate(asked, params, use_tqdm=False)]

    def _draft(
        self, request: GenerationRequest, index: int, prompt: list[int], first: int
    ) -> Draft:
        vocabulary = self._vocabulary
        return Draft(
            request,
            index,
            prompt,
            first=first,
            tokenizer=vocabulary.tokenizer,
            end_ids=vocabulary.end_ids,
        )

    def _drawing(self, request: GenerationRequest, index: int, prompt: list[int]) -> Any:
        stream = stream_key(request.seed, prompt, index)
        return vllm.SamplingParams(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            stop=[stop for stop in request.stop if stop],
            stop_token_ids=sorted(self._vocabulary.end_ids),
            seed=int.from_bytes(stream[:8], "big") >> 1,
            logprobs=self._logprobs,
        )

    def _write(self, draft: Draft, output: Any) -> None:
        for token, row in zip(output.token_ids, output.logprobs, strict=True):
            if draft.finished is None:
                draft.add(token, row[token].logprob, self._entropy(row))
        # The engine saw an end that is none here.
        draft.finished = draft.finished or "stop"

    def _entropy(self, row: Any) -> float:
        whole = self._alternatives == "all"
        return entropy([told.logprob for told in row.values()], whole=whole)

    def _marked(self, generation: Generation) -> Generation:
        truncated = bool(generation.entropies) and self._alternatives != "all"
        return generation.model_copy(update={"approx": truncated})

    def _scored(self, prompt: list[int], given: list[int], rows: list[Any]) -> Scored:
        logprobs = [row[token].logprob for row, token in zip(rows, given, strict=True)]
        return Scored(
            tokens=tuple(self._vocabulary.pieces(prompt, given)),
            token_ids=tuple(given),
            logprobs=tuple(logprobs),
            entropies=tuple(map(self._entropy, rows)),
            usage=Usage(input_tokens=len(prompt) + len(given), calls=1) if given else Usage(),
            approx=bool(given) and self._alternatives != "all",
        )

    def _check(self, ids: list[int], reserved: int) -> None:
        if len(ids) + reserved > self._context:
            raise ContextOverflow(self.name, len(ids), reserved, self._context)


def load(
    checkpoint: Checkpoint, *, alternatives: int | Literal["all"], options: dict[str, Any]
) -> VllmReader:
    """Start the engine on a checkpoint.

    Raises:
        UsageError: vLLM cannot load it.
    """
    vocabulary = _vocabulary.load(checkpoint.folder, checkpoint.name)
    if current_platform.is_cpu():
        # There a prompt that is read in parts kills the engine where a sample has a seed.
        options = {**options, "enable_chunked_prefill": False}
    with refusal(f"{checkpoint.name}: vLLM cannot load it"):
        engine = vllm.LLM(
            model=str(checkpoint.folder),
            load_format="safetensors",
            trust_remote_code=False,
            max_logprobs=-1,
            logprobs_mode="raw_logprobs",
            disable_log_stats=True,
            **options,
        )
    precision = str(engine.llm_engine.model_config.dtype).removeprefix("torch.")
    name = f"{checkpoint.name}:vllm"
    return VllmReader(
        engine,
        vocabulary,
        name=name if precision == "float32" else f"{name}:{precision}",
        alternatives=alternatives,
    )
