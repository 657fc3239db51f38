"""Ensemble of retrievers (Li et al. 2024, arXiv 2405.20680)."""

from experiments.paper_tables.result import DASH, DATA, DRAWN, LARGE, NONE, Result, Source

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
