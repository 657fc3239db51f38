"""ITEM (Zhang et al. 2026, arXiv 2406.11290)."""

from experiments.paper_tables.result import DASH, DATA, DRAWN, LARGE, NONE, Result, Source

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
