"""Which meters and rules the command line appraises a run with."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopscope.runtime.ports import Entailment, Reader
    from hopscope.runtime.types import Credit, Run


def appraise(
    run: "Run", reader: "Reader", entailment: "Entailment", *, samples: int, seed: int
) -> "list[Credit]":
    """SePer soft and hard and GroGU, shared by trajectory, leave-one-out and Shapley.

    The meters share what they ask of the models: the samples of both kinds of SePer are one.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    from hopscope.runtime.types import Provenance
    from hopscope.tracing import appraisal
    from hopscope.tracing.caching import CachedEntailment, CachedReader
    from hopscope.tracing.credit import leave_one_out, shapley, trajectory
    from hopscope.tracing.meters.grogu import GroGU
    from hopscope.tracing.meters.seper import SePer

    asked, judge = CachedReader(reader), CachedEntailment(entailment)
    return appraisal.appraise(
        run,
        [
            SePer(asked, judge, samples=samples, seed=seed),
            SePer(asked, judge, samples=samples, seed=seed, kind="hard"),
            GroGU(asked, seed=seed),
        ],
        [trajectory.build(), leave_one_out.build(), shapley.build()],
        Provenance(
            reader=reader.name,
            entailment=entailment.name,
            seed=seed,
            settings={"samples": samples, "counterfactual": "empty", "mode": "frozen"},
        ),
    )
