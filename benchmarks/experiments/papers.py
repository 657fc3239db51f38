"""Makes docs/evidence/papers.md: each table of five papers with its command, and figures here.

The commands are for a user's own files and models; `FILE`, `INDEX` and `MODEL` stand for those. The
figures here are those of the embedded reader on its generated world, by the same suites.

    python benchmarks/experiments/papers.py [--limit 20] [--seed 0] > docs/evidence/papers.md
"""

import argparse
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from hopscope.api import parts
from hopscope.lab.running_suites import Suites
from hopscope.runtime.types import Measurement

DASH = "\N{EN DASH}"

COMPARED = ("lexical", "equivalence")
"""The entailments of the suite `seper`; all but T8 is by the first."""

DATA = "--data FILE --reader hf:MODEL"
"""The part that makes a suite read a user's own questions."""
FUSED = "--data FILE --reader fid:MODEL"
"""Likewise, with Fusion-in-Decoder."""


class Source(NamedTuple):
    """A figure of a suite on the generated world, as `hopscope lab --json` calls it."""

    suite: str
    name: str
    """`*` stands for any text, as the version of a model."""
    percent: bool = True


class Result(NamedTuple):
    """A table or figure of a paper."""

    place: str
    """As T1 or Fig. 3."""
    shows: str
    commands: Sequence[str]
    """In their order; none if there is no command."""
    differs: str
    paper: str
    """One of the paper's figures, with what it is of."""
    here: Source | None = None
    """The same figure here."""
    unmeasured: str = ""
    """Without it, why there is none."""
    elsewhere: str = ""
    """In place of both, figures of another benchmark."""


LARGE = "needs the paper's model"
DRAWN = "the paper gives a picture only"
NONE = "no command"

SEPER = (
    Result(
        "T1",
        "agreement with people's judgements of answers",
        [
            "hopscope lab equivalence FILE --entailment nli:MODEL",
            "hopscope lab equivalence FILE --metric bertscore:MODEL --threshold 0.3",
        ],
        "the judges Auto-J and Prometheus by `judge:READER` with our prompt; BERTScore's threshold "
        "is your own",
        "F1 on TriviaQA, mean of five systems: 97.5",
        unmeasured="[equivalence](equivalence.md) has the embedded model's, and BERTScore's",
    ),
    Result(
        "T2",
        "r with the true utility",
        [f"hopscope lab seper {DATA} --entailment nli:MODEL --preset seper-paper"],
        "the gold of a record beside its distractors and random passages of the corpus; judges by "
        "`judge:READER`",
        "ΔSePer-S on SQuAD: 0.905; HotpotQA 0.660",
        Source("seper", "single_passage/ΔSePer-S/r", percent=False),
    ),
    Result("T3", "the data sets", [], "a description", DASH, unmeasured=NONE),
    Result(
        "T4, Fig. 3",
        "numbers of samples and repetitions",
        [f"hopscope lab seper {DATA} --preset seper-paper"],
        "the table `samples` of the same command",
        "standard deviation of r over five repetitions, N = 10, NQ: 0.002",
        Source("seper", "samples/N=10/soft_sd", percent=False),
    ),
    Result(
        "T5, T6",
        "two cases",
        ['hopscope run "QUESTION" --gold ANSWER -w ircot --corpus INDEX --reader hf:MODEL'],
        "questions of your own",
        "single cases",
        unmeasured="the demo prints one",
    ),
    Result(
        "T7",
        "latency and cost of LLM judges",
        [
            "hopscope score EXP -m judge_direct -m judge_reduction --reader openai:URL#MODEL",
            "hopscope compare EXP -t overview",
        ],
        "the lines under the averages: calls, tokens, seconds and money per answer; a run for each "
        "provider",
        "seconds and dollars by provider",
        unmeasured="needs the providers' services",
    ),
    Result(
        "T8, Fig. 7",
        "entailment models",
        [
            f"hopscope lab seper {DATA} --entailment equivalence --entailment nli:MODEL "
            "--entailment judge:READER"
        ],
        "r between the models' ΔSePer, not SePer; any number of models judge the same samples; "
        "here `equivalence` and `lexical`",
        "r between models above 0.7",
        Source("seper", f"entailments_single_passage/{COMPARED[1]}:*/{COMPARED[0]}", percent=False),
    ),
    Result("T9", "retriever and reranker compared", [], "a description", DASH, unmeasured=NONE),
    Result(
        "T10, T11",
        "retrievers by k",
        [
            "hopscope eval FILE --corpus INDEX -w naive:k=1 -w naive:k=5 -w naive:k=10 "
            "--meter seper --name EXP",
            "hopscope compare EXP -t seper_benchmark",
        ],
        "one `eval` for each index and reader",
        "ΔSePer on NQ with e5, 7B, smallest k: 0.148",
        unmeasured=LARGE,
    ),
    Result(
        "T12",
        "workflows by k",
        [
            f"hopscope lab workflows_by_k {DATA}",
            f"hopscope lab workflows_by_k {DATA},adapter=ADAPTER --entailment nli:MODEL "
            "-o self_ask.back_off=true",
        ],
        "RetRobust is the row `self_ask` of the second command, whose reader its LoRA adapter "
        "tunes; a command for each size of the model",
        "ΔSePer by workflow, k and size of the model",
        Source("workflows_by_k", "workflows_by_k/ircot, k=3/seper_delta", percent=False),
    ),
    Result(
        "Fig. 4",
        "belief with and without retrieval",
        [
            "hopscope eval FILE -w closed_book -w naive --meter seper --name EXP",
            "hopscope compare EXP -t overview",
        ],
        "a table in place of the picture",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result(
        "Fig. 5, 6",
        "numbers of passages; compressed prompts; rerankers",
        [
            "hopscope eval FILE -w naive:k=1 -w naive:k=10 --meter seper --name EXP",
            "hopscope eval FILE --corpus 'INDEX@10@CP(selective_context)' -w naive --meter seper",
            "hopscope eval FILE --corpus 'INDEX@RR(cross_encoder:MODEL)@5' -w naive --meter seper",
        ],
        "a table in place of the picture",
        DRAWN,
        unmeasured=DRAWN,
    ),
)

ERAG = (
    Result(
        "T1",
        "labels of passages against the answer",
        [f"hopscope lab erag {DATA}", f"hopscope lab erag {FUSED}"],
        "the second is FiD, of a T5 that you trained: none is shipped; the figure here is a causal "
        "reader's; lists of your own ranking by `--corpus INDEX --candidates run.trec`; no labels "
        "by Mistral's judgement",
        "Kendall's τ, eRAG by precision, HotpotQA, BM25: 0.594",
        Source("erag", "erag/eRAG P/tau_2", percent=False),
    ),
    Result(
        "Fig. 1",
        "the same by the length of the list",
        [
            "hopscope eval FILE --corpus INDEX -w naive:k=5 -w naive:k=20 --name EXP",
            "hopscope compare EXP -t correlations --reader hf:MODEL",
        ],
        "a table for each k",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result(
        "Fig. 2",
        "two sizes of the model",
        [f"hopscope lab erag {FUSED}"],
        "one command for each model",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result(
        "Fig. 3",
        "FiD and one prompt",
        [
            f"hopscope lab erag {FUSED}",
            f"hopscope lab erag {FUSED} --prompts fid-in-prompt",
            "hopscope eval FILE --corpus INDEX -w naive:k=10 -w naive:k=10,prompts=fid-in-prompt "
            "--reader fid:MODEL --name EXP",
            "hopscope compare EXP -t correlations --reader fid:MODEL",
        ],
        "two commands over lists of differing quality, or two of one retriever's lists; a model "
        "trained for each form, or one for both",
        DRAWN,
        unmeasured="needs a trained T5",
    ),
    Result(
        "T2",
        "time and memory",
        [],
        "`python benchmarks/reader/fusion.py`: on the processor, random weights in the shape of "
        "T5-small; the paper's memory is a GPU's and includes the weights",
        "eRAG 2.468 times as fast; 7 to 15 times less memory with a call for each question, 30 to "
        "48 times with one for each passage",
        elsewhere="k = 50: labels 5.5 s and 398 MB, with a call for each passage 21.0 s and 8 MB; "
        "answer by FiD 4.5 s and 366 MB, from one prompt 33.0 s and 3,857 MB "
        "([performance](performance.md#erags-labels-and-an-answer-from-all-passages))",
    ),
)

EOR_FIT = "hopscope eor fit FILE --corpus INDEX -o pool=POOL --reader hf:MODEL --out weights.json"

EOR = (
    Result(
        "T1",
        "the ensemble and the best of its pool",
        [
            f"hopscope lab eor {DATA} --entailment bem:MODEL --preset eor-authors",
            EOR_FIT,
            "hopscope eval FILE -w eor --preset eor-authors -o weights=weights.json",
        ],
        "the suite searches two halves of the corpus, without the preset by a pool of eight; the "
        "preset has the paper's 16 and in `eval` needs a search engine; the retrained Contriever "
        "is not public",
        "EM on NQ, Llama2-7B: EoR 50.2, best retriever 46.3",
        Source("eor", "eor/EoR/exact_match"),
    ),
    Result(
        "T2",
        "best retriever by questions of training and test",
        [f"hopscope lab eor {DATA}"],
        "the fourth table: every retriever on both",
        "BEM on WebQ, Wiki@10: 62.1 and 58.2",
        Source("eor", "eor_splits/Wiki@5/equivalence_compared"),
    ),
    Result(
        "Fig. 1",
        "relative win ratios",
        ["hopscope compare EXP -t win_ratios"],
        "over an experiment with a workflow for each retriever",
        "of Wiki@10's errors another retriever avoids 26 %",
        unmeasured=LARGE,
    ),
    Result(
        "Fig. 2",
        "inconsistency (MRLR)",
        [f"hopscope lab eor {DATA}"],
        "a column in place of the boxes",
        "MRLR of EoR on NQ, Llama2-7B: 12.4",
        Source("eor", "eor/EoR/mrlr"),
    ),
    Result(
        "Fig. 3",
        "accuracy by retriever",
        [f"hopscope lab eor {DATA}"],
        "the rows of the pool",
        "BEM on NQ, Wiki@10, ChatGPT: 62.2",
        Source("eor", "eor/Wiki@5/exact_match"),
    ),
    Result(
        "Fig. 4, 7 to 9",
        "errors by kind, and those that another avoids",
        ["hopscope errors EXP --by workflow", "hopscope compare EXP -t errors"],
        "numbers in place of pictures",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result(
        "Fig. 5",
        "upper bound by size of the pool",
        [f"hopscope lab eor {DATA}", "hopscope compare EXP -t upper_bound"],
        "the mean over all pools of a size, and their quartiles in place of the boxes; "
        "[real answers](real_answers.md) has it for three routes of Llama 3.1",
        DRAWN,
        Source("eor", "eor_upper_bound/8/mean"),
    ),
    Result(
        "Fig. 6",
        "learned weights",
        [EOR_FIT],
        "the file of weights in place of the picture",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result("T3", "the data sets", [], "a description", DASH, unmeasured=NONE),
)

QUERIES = "--data queries.tsv --qrels qrels.txt --corpus INDEX --reader hf:MODEL"
"""The part that makes a suite read TREC's or BEIR's questions and judgments."""
TOP_20 = "hopscope index search INDEX --queries queries.tsv -k 20 --trec > run.trec"
JUDGED = f"hopscope lab item {QUERIES} --candidates run.trec --preset item-paper --grade 3"

ITEM = (
    Result(
        "T1, T6 to T8",
        "utility judgments on TREC DL and WebAP",
        [TOP_20, JUDGED, f"{JUDGED} -o judgment=pointwise"],
        "a list without a passage of utility is judged as it is, where the paper replaces its last "
        "passage by one; ITEM-ARs drafts explicit answers",
        "ITEM-As, m = 3, TREC DL, Llama 3: 56.0",
        Source("item", "item/ITEM-As (3)/micro_f1"),
    ),
    Result(
        "T2",
        "utility judgments on GTI-NQ",
        [f"hopscope lab item {DATA}"],
        "the candidates of a record",
        "Vanilla, listwise, Llama 3: 43.4",
        Source("item", "item/Vanilla/micro_f1"),
    ),
    Result(
        "T3, T4, T11, T12",
        "rankings",
        [
            "hopscope eval FILE --corpus INDEX -w rankgpt -w item:variant=Ar,k=5 "
            "-w item:variant=ARr --name EXP",
            "hopscope export trec EXP --out trec",
        ],
        "NDCG by trec_eval from the written rankings and your own judgments",
        "NDCG@5, ITEM-Ar (3), TREC DL, Llama 3: 77.3",
        unmeasured=LARGE,
    ),
    Result(
        "T5, T9",
        "answers from what each method chose",
        [f"hopscope lab item {DATA}"],
        "the second table of the same command, with the row Golden",
        "EM, Golden, NQ, Llama 3: 64.5; ITEM-As (3) 50.3",
        Source("item", "item_answers/ITEM-As (3)/em"),
    ),
    Result(
        "T10",
        "precision by grade of the judgment",
        [JUDGED],
        "the second table, where the judgments have several grades; candidates as in T1",
        "ITEM-As, m = 3, grade 3: 50.6",
        unmeasured="the generated world has no grades",
    ),
    Result("T13", "the data sets", [], "a description", DASH, unmeasured=NONE),
    Result(
        "T14",
        "tokens and seconds",
        [
            "hopscope eval FILE -w vanilla -w uj_expa -w uj_impa -w k_sampling -w item:m=3 "
            "--preset item-paper --name EXP",
            "hopscope compare EXP -t overview",
        ],
        "counts of your own reader",
        "seconds of Vanilla 0.49, ITEM-As (3) 2.13, Mistral",
        unmeasured=LARGE,
    ),
    Result(
        "Fig. 7",
        "numbers of iterations",
        [f"hopscope lab item {DATA}"],
        "the rows (1) to (5); of ITEM-Ar by `eval` as in T3",
        DRAWN,
        unmeasured=DRAWN,
    ),
    Result(
        "Fig. 8",
        "another rule to stop",
        [f"hopscope lab item {DATA} -o item.rouge_stop=0.5"],
        "one command for each threshold",
        DRAWN,
        unmeasured=DRAWN,
    ),
)

GROGU = (
    Result(
        "T1, T9",
        "win rates of gold passages",
        [f"hopscope lab grogu {DATA} --preset grogu-paper"],
        "over the questions with the fewest gold passages",
        "KeyEntropy, NQ, over distractors: Phi 77.9, Qwen 82.4",
        Source("grogu", "grogu_wins/KeyEntropy/distractor"),
    ),
    Result(
        "T2",
        "gold after retrieved and after random passages",
        [f"hopscope lab grogu {DATA}"],
        "the second table",
        "right with four random passages: Phi 91.4",
        Source("grogu", "grogu_contexts/4 random/right"),
    ),
    Result(
        "T3, T10",
        "concordance with right answers",
        [f"hopscope lab grogu {DATA}"],
        "the third table",
        "KeyEntropy, accuracy: Phi 66.0",
        Source("grogu", "grogu_concordance/KeyEntropy/accuracy"),
    ),
    Result(
        "T4, T6, T11",
        "the same passages for two readers",
        [f"hopscope lab grogu {DATA} --other-reader hf:MODEL"],
        "shares of passages and pairs that the readers value otherwise, not accuracy of answers",
        "accuracy, Phi by its own KeyEntropy: 74.7",
        unmeasured="another figure",
    ),
    Result(
        "T5, T12",
        "retrieval by rewrites",
        ["hopscope index search INDEX --queries rewrites.tsv -k 100 --qrels qrels.tsv"],
        "MRR and R@k of the rankings; the rewrites are those of your own rewriter",
        "MRR, TopiOCQA, ANCE, Qwen by GroGU: 37.8",
        unmeasured="needs a trained rewriter",
    ),
    Result(
        "the rewriter's data",
        "preferences for SFT and DPO",
        ["hopscope export preferences EXP --rewrites rewrites.jsonl -k 10 --out rewriter"],
        "the history of a conversation is a field of the file and of the rows; training is TRL's",
        "15,555 questions",
        unmeasured="counts only",
    ),
    Result(
        "T7",
        "answers from what rewrites find",
        ["hopscope score EXP -m exact_match -m f1"],
        "the accuracy that a model judges is `-m equivalence`",
        "EM, TopiOCQA, BM25, Qwen by GroGU: 20.3",
        unmeasured="needs a trained rewriter",
    ),
    Result(
        "T8, T13",
        "learning rates; other methods",
        [],
        "settings and results of others",
        DASH,
        unmeasured=NONE,
    ),
)

PAPERS: Mapping[str, Sequence[Result]] = {
    "SePer (Dai et al. 2025, arXiv 2503.01478)": SEPER,
    "eRAG (Salemi and Zamani 2024, arXiv 2404.13781)": ERAG,
    "EoR (Li et al. 2024, arXiv 2405.20680)": EOR,
    "ITEM (Zhang et al. 2026, arXiv 2406.11290)": ITEM,
    "GroGU (2026)": GROGU,
}

INTRODUCTION = """\
# Evidence: the papers' tables

Each table and figure of five papers: the command that makes it on your own questions with your
own model, what differs, a figure of the paper, and the same figure of the embedded reader, with
its 95 % interval. That reader answers a few questions of its generated world, another and easier
task: its figures show that the command works, not that those of the paper are met. Both are in the
paper's unit.

`FILE`, `INDEX`, `MODEL`, `ADAPTER`, `READER`, `POOL` and `EXP`, the name of an experiment, stand
for your own ([on your own data](../lab.md#on-your-own-data)); [credit](../credit.md#presets) has
the presets. Made by
"""

Figures = Mapping[str, Mapping[str, Measurement]]
"""The figures of each suite by name."""


def suites() -> list[str]:
    """The suites that the page has figures of."""
    found = [one.here.suite for own in PAPERS.values() for one in own if one.here]
    return list(dict.fromkeys(found))


def measured(limit: int, seed: int) -> Figures:
    """Run the suites on a generated world."""
    others = [name for name in suites() if name != "seper"]
    found: dict[str, Mapping[str, Measurement]] = {}
    for names, entailments in ((["seper"], COMPARED), (others, ())):
        running = Suites(names, parts.TINY, None, seed=seed, limit=limit, entailments=entailments)
        found |= {outcome.name: outcome.figures for outcome in running.run()}
    return found


def page(figures: Figures, command: str) -> str:
    """The page as Markdown.

    Raises:
        KeyError: a figure that the table names does not exist.
    """
    lines = [
        INTRODUCTION,
        f"    {command}",
        "",
    ]
    for title, results in PAPERS.items():
        lines += [
            f"## {title}",
            "",
            "| table | what it shows | command | what differs | the paper | here |",
            "|---|---|---|---|---|---|",
            *(row(result, figures) for result in results),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def row(result: Result, figures: Figures) -> str:
    commands = "; ".join(f"`{command}`" for command in result.commands) or DASH
    cells = [
        result.place,
        result.shows,
        commands,
        result.differs,
        result.paper,
        here(result, figures),
    ]
    return f"| {' | '.join(cells)} |"


def here(result: Result, figures: Figures) -> str:
    """The figure with its interval, the figures of another benchmark, or the reason why there is
    none."""
    if result.elsewhere:
        return result.elsewhere
    if result.here is None:
        return f"{DASH} ({result.unmeasured})"
    found = figure(figures, result.here)
    if found.value is None:
        return f"{DASH} ({found.reason})"
    scale, digits = (100, 1) if result.here.percent else (1, 3)
    text = f"{found.value * scale:.{digits}f}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low * scale:.{digits}f}, {found.high * scale:.{digits}f}]"
    return f"{text} (n {found.n})"


def figure(figures: Figures, source: Source) -> Measurement:
    """
    Raises:
        KeyError: there is none of this name.
    """
    for name, found in figures[source.suite].items():
        if fnmatchcase(name, source.name):
            return found
    raise KeyError(source.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    command = f"python benchmarks/experiments/papers.py --limit {given.limit} --seed {given.seed}"
    print(page(measured(given.limit, given.seed), command), end="")


if __name__ == "__main__":
    main()
