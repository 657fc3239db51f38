"""The reader over vLLM's engine: tokens in, tokens and their distributions out.

Each sample is a separate request with its own seed, so its draws depend neither on its siblings
nor on the batch, as far as the engine's arithmetic does not. To score, each token is requested as
the next generated one, because some versions of vLLM return stale values for the tokens of a
prompt; its prefix cache computes the prompt once.
"""

import threading
from collections.abc import Sequence
from typing import Any, Literal

import vllm
from vllm.platforms import current_platform

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.generation import vocabularies
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.sampling import stream_key
from hopscope.runtime.generation.transformers_reader import failures
from hopscope.runtime.generation.vocabularies import Vocabulary
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.loading import refusal
from hopscope.runtime.servers.replies import entropy
from hopscope.runtime.thinking.habit import Habit
from hopscope.runtime.thinking.marks import Opening, Thinking
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
        return each_once(requests, lambda distinct: self._written(distinct, first))

    def _written(self, requests: Sequence[GenerationRequest], first: int) -> list[list[Generation]]:
        with self._lock, failures(self.name):
            samples: list[list[_Sample]] = []
            for request in requests:
                prompt = self._vocabulary.renderer.prompt_ids(request.prompt, request.thought)
                opening = self._vocabulary.renderer.opening(request, prompt, self._context)
                self._check(prompt, request.max_tokens + (opening.room if opening else 0))
                samples.append(
                    [
                        _Sample(request, i, self._draft(request, i, prompt, first, opening), prompt)
                        for i in range(first, first + request.n)
                    ]
                )
            every = [sample for same in samples for sample in same]
            # Thoughts come first: the answer's limit and stop strings do not apply to them.
            thinking = [s for s in every if self.habit.awaits_thought(s.request)]
            self._go_on(thinking, [self._considering(sample) for sample in thinking])
            for sample in thinking:
                while sample.draft.given:  # the forced end of a thought
                    sample.add(sample.draft.given[0], 0.0, 0.0)
            answering = [sample for sample in every if sample.draft.finished is None]
            params = [self._drawing(s.request, s.index, s.ids) for s in answering]
            self._go_on(answering, params)
            for sample in answering:
                # The engine reported an end that is none here.
                sample.draft.finished = sample.draft.finished or "stop"
            return [[self._marked(one.draft.generation()) for one in same] for same in samples]

    @property
    def habit(self) -> Habit:
        """Whether and how the model thinks."""
        return self._vocabulary.renderer.habit

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Likelihoods of given continuations; see the port."""
        return each_once(requests, self._likelihoods)

    def _likelihoods(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
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
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        return [one.outputs[0] for one in self._engine.generate(inputs, params, use_tqdm=False)]

    def _draft(
        self,
        request: GenerationRequest,
        index: int,
        prompt: list[int],
        first: int,
        opening: Opening | None,
    ) -> Draft:
        vocabulary = self._vocabulary
        return Draft(
            request.model_copy(update={"keeps": None}),  # the engine writes the whole reply
            index,
            prompt,
            first=first,
            tokenizer=vocabulary.tokenizer,
            end_ids=vocabulary.end_ids,
            opening=opening,
        )

    def _considering(self, sample: "_Sample") -> Any:
        """Sampling parameters of a thought, which ends at its closing mark or its limit."""
        params = self._drawing(sample.request, sample.index, sample.ids)
        params.stop = [marks.close for marks in self.habit.marks]
        params.max_tokens = sample.draft.thought_limit
        params.skip_special_tokens = False
        return params

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

    def _go_on(self, samples: Sequence["_Sample"], params: list[Any]) -> None:
        outputs = self._run([sample.ids for sample in samples], params)
        for sample, output in zip(samples, outputs, strict=True):
            for token, row in zip(output.token_ids, output.logprobs, strict=True):
                if sample.draft.finished is None and not sample.draft.given:
                    sample.add(token, row[token].logprob, self._entropy(row))

    def _entropy(self, row: Any) -> float:
        whole = self._alternatives == "all"
        return entropy([entry.logprob for entry in row.values()], whole=whole)

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
            raise ContextOverflowError(self.name, len(ids), reserved, self._context)


class _Sample:
    """A sample that the engine is generating."""

    def __init__(
        self, request: GenerationRequest, index: int, draft: Draft, prompt: list[int]
    ) -> None:
        self.request = request
        self.index = index
        self.draft = draft
        self.ids = list(prompt)
        """The prompt and the tokens so far."""

    def add(self, token: int, logprob: float, entropy: float) -> None:
        self.ids.append(self.draft.add(token, logprob, entropy))


def load(
    checkpoint: Checkpoint,
    *,
    alternatives: int | Literal["all"],
    options: dict[str, Any],
    thinking: Thinking = "auto",
) -> VllmReader:
    """Start the engine on a checkpoint.

    Raises:
        UsageError: vLLM cannot load it.
    """
    vocabulary = vocabularies.load(checkpoint.folder, checkpoint.name, thinking)
    if current_platform.is_cpu():
        # There a prompt in chunks crashes the engine if a sample has a seed.
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
        name=(name if precision == "float32" else f"{name}:{precision}")
        + vocabulary.renderer.habit.suffix,
        alternatives=alternatives,
    )
