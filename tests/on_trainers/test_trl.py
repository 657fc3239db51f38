"""TRL's GRPOTrainer trains the embedded reader to search Hopland, rewarded by turn rewards."""

import json
from pathlib import Path
from typing import Any

import pytest

import hopscope
from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.prompting.prompts import chain_of_thought
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Hit

GROUP, STEPS, K = 4, 3, 2


def found(hits: list[Hit]) -> str:
    """What the tool says."""
    passages = [hit.passage for hit in hits]
    return json.dumps([{"id": p.id, "title": p.title, "text": p.text} for p in passages])


def transcript(question: str, answers: list[str], searches: list[tuple[str, str]]) -> Any:
    """A rollout in OpenAI's format."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for place, (query, told) in enumerate(searches):
        function = {"name": "search", "arguments": json.dumps({"query": query})}
        call = {"id": f"call{place}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call{place}", "content": told},
        ]
    messages.append({"role": "assistant", "content": "done"})
    return {"question": question, "answers": answers, "messages": messages}


@pytest.mark.filterwarnings("ignore")  # of TRL and what it calls
def test_grpo_takes_steps_with_turn_rewards(tmp_path: Path) -> None:
    """The policy writes the second query of a two-hop question; its reward is that turn's."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    corpus, reader = parts.corpus("hopland"), parts.reader("tiny")
    rows = []
    for row in [row for row in hopland.questions("dev") if row.hops == 2][:4]:
        question = row.question
        [hits] = corpus.search([question.text], k=K)
        prompt = chain_of_thought(question.text, [hit.passage for hit in hits])
        rows.append(
            {
                "prompt": [message.model_dump() for message in prompt.messages],
                "question": question.text,
                "answers": list(question.answers),
                "first": found(hits),
            }
        )
    batches: list[list[float | None]] = []

    def gain(prompts: Any, completions: Any, **columns: Any) -> list[float | None]:
        rollouts = []
        for place, completion in enumerate(completions):
            query = completion[0]["content"].strip() or "nothing"
            question, answers = columns["question"][place], columns["answers"][place]
            searches = [(question, columns["first"][place])]
            searches.append((query, found(corpus.search([query], k=K)[0])))
            rollouts.append(transcript(question, answers, searches))
        scored = hopscope.rewards(rollouts, reader=reader, meter="gold_probability")
        for each in scored:
            assert each.reward == pytest.approx(sum(each.differences), abs=1e-9)  # type: ignore[arg-type]
            assert len(each.turns) == 2
        batches.append([each.differences[1] for each in scored])
        return batches[-1]

    model = AutoModelForCausalLM.from_pretrained(tiny.FOLDER)
    before = [weights.detach().clone() for weights in model.parameters()]
    trainer = GRPOTrainer(
        model,
        reward_funcs=gain,
        args=GRPOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            max_steps=STEPS,
            per_device_train_batch_size=2 * GROUP,
            num_generations=GROUP,
            max_completion_length=16,
            temperature=1.5,
            learning_rate=1e-4,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            seed=0,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(tiny.FOLDER),
    )
    trainer.train()
    logged = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    assert len(logged) == len(batches) == STEPS
    for mean, batch in zip(logged, batches, strict=True):
        assert mean == pytest.approx(sum(batch) / len(batch), abs=1e-4)  # type: ignore[arg-type]
    assert any(max(batch) - min(batch) > 0.1 for batch in batches)  # type: ignore[type-var, operator]
    changed = zip(before, model.parameters(), strict=True)
    assert any(not torch.equal(old, new.detach().cpu()) for old, new in changed)
