"""SePer (Dai et al. 2025, arXiv 2503.01478)."""

from experiments.paper_tables.result import DASH, DATA, DRAWN, LARGE, NONE, Result, Source

COMPARED = ("lexical", "equivalence")
"""The entailments of the suite `seper`; all but T8 is by the first."""

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
