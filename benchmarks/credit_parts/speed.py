"""The product against the straightforward loop, with the same reader: times, samples and scores."""

from collections.abc import Sequence

from credit_parts.bench import Benchmark, N, Row, timed
from credit_parts.contexts import contexts
from credit_parts.product import Product
from credit_parts.prompted import Prompted
from credit_parts.runs import deep, trajectories
from credit_parts.straightforward import Clock, Game, Loop, shapley, trajectory
from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.texts import answers
from hopscope.runtime.types import Question, Run
from hopscope.tracing.wrappers.cached import CachedEntailment

DEEP = 4
"""Steps of the run for Shapley credit."""


def measure(bench: Benchmark) -> Row:
    questions = bench.questions()
    retriever = parts.corpus(parts.HOPLAND)
    few = questions[: max(1, bench.limit // 10)]
    deeper = [deep(question, retriever, steps=DEEP, k=2) for question in few]
    return {
        "trajectory": compared(bench, trajectories(bench), every=False),
        "ten distinct answers": entailment(bench, questions[: max(1, bench.limit // 4)]),
        f"Shapley, T = {DEEP}": compared(bench, deeper, every=True),
    }


def compared(bench: Benchmark, runs: Sequence[Run], *, every: bool) -> Row:
    """End to end by both, and by the reader alone."""
    loop = Loop(bench.reader(bare=True), Prompted(bench.plain_model()))
    wanted = [loop_credits(loop, found, every=every) for found in runs]
    product = Product(bench, "shapley" if every else "trajectory")
    whole = Clock()
    worst = 0.0
    for found, credits in zip(runs, wanted, strict=True):
        with whole.running():
            given = product.credits(found)
        worst = max([worst, *(abs(given[key] - value) for key, value in credits.items())])
    drawn = [
        (one.token_ids, other.token_ids)
        for request, samples in loop.samples.items()
        for one, other in zip(samples, product.reader.samples[request], strict=True)
    ]
    reader = bench.reader()
    asked = [list(contexts(found, every=every).values()) for found in runs]
    generation = timed(lambda: [reader.generate(requests) for requests in asked])
    slow = bench.seconds(loop.generation) + bench.seconds(loop.entailment)
    return {
        "runs": len(runs),
        "contexts": sum(map(len, asked)),
        "samples": len(drawn),
        "equal samples": sum(one == other for one, other in drawn) / len(drawn),
        "largest difference of credit": worst,
        "pairs, loop": loop.pairs,
        "pairs, product": product.pairs,
        "seconds, loop": slow,
        "seconds, product": bench.seconds(whole),
        "generation, times faster": bench.ratio(loop.generation, generation),
        "end to end, times faster": bench.ratio(slow, whole),
    }


def loop_credits(loop: Loop, found: Run, *, every: bool) -> dict[tuple[str, int], float]:
    """Credit of each player by both meters, computed by the loop."""
    golds = answers.distinct(found.question.answers)
    soft: Game = {}
    hard: Game = {}
    for coalition, request in contexts(found, every=every).items():
        soft[coalition], hard[coalition] = loop.score(found.question.text, golds, request)
    rule = shapley if every else trajectory
    return {
        (meter, player): credit
        for meter, worth in (("seper", soft), ("seper_hard", hard))
        for player, credit in rule(worth).items()
    }


def entailment(bench: Benchmark, questions: Sequence[Question]) -> Row:
    """Ten distinct answers to each question: all pairs both ways, and each with the gold."""
    golds = list(dict.fromkeys(item.question.answers[0] for item in hopland.questions("test")))
    asked: list[list[Statement]] = []
    for question in questions:
        gold = question.answers[0]
        texts = [answer for answer in golds if answer != gold][:N]
        among = [(one, other) for one in texts for other in texts if one != other]
        pairs = [*among, *((t, gold) for t in texts), *((gold, t) for t in texts)]
        asked.append([Statement(question.text, *pair) for pair in pairs])
    plain, model = bench.plain_model(), bench.model()
    for one in (plain, model):
        one.classify(asked[0][:1])
    alone: list[Probabilities] = []
    slow = timed(lambda: alone.extend(plain.classify([s])[0] for each in asked for s in each))
    together: list[Probabilities] = []
    cached = CachedEntailment(model)
    fast = timed(
        lambda: together.extend(found for each in asked for found in cached.classify(each))
    )
    worst = max(
        abs(a - b)
        for one, other in zip(alone, together, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return {
        "pairs": len(alone),
        "largest difference of probability": worst,
        "milliseconds a pair, loop": 1000 * bench.seconds(slow) / len(alone),
        "milliseconds a pair, product": 1000 * bench.seconds(fast) / len(alone),
        "times faster": bench.ratio(slow, fast),
    }
