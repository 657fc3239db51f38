"""eRAG (Salemi and Zamani 2024, arXiv 2404.13781)."""

from experiments.paper_tables.result import DATA, DRAWN, FUSED, Result, Source

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
