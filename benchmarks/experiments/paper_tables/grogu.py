"""GroGU (2026)."""

from experiments.paper_tables.result import DASH, DATA, NONE, Result, Source

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
