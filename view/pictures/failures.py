"""The heat map of failures: shares of retriever, extraction and hallucination errors by step and
number of hops (EoR, `tracing.error_decomposition`)."""

from collections.abc import Sequence

from hopscope.view.pictures.specification import Row, Spec, field, readable, specification, tooltips

COLUMNS = {
    "error": "error",
    "hops": "hops",
    "step": "step",
    "share": "share",
    "low": "low",
    "high": "high",
    "answers": "answers",
}


def spec(rows: Sequence[Row], *, experiment: str) -> Spec:
    """
    Args:
        rows: one for each kind of error, step and number of hops: `share` with `low` and `high`,
            and the number of `answers` behind it.

    Raises:
        UsageError: no step has a verdict.
    """
    worst = max((r for r in rows if r["share"] is not None), key=lambda r: r["share"], default=None)
    axes = {
        "x": field("step", "N", "step", sort={"field": "order"}, axis={"labelAngle": 0}),
        "y": field("hops", "N", "hops"),
    }
    return specification(
        f"Failures in {experiment}",
        "Shares of errors by step and hops. The largest is "
        f"{worst['share']:.2f}, {worst['error']} at step {worst['step']} of {worst['hops']} hops."
        if worst
        else f"no step of {experiment} has a verdict",
        rows,
        COLUMNS,
        facet={
            "column": field(
                "error", "N", "", sort=list(dict.fromkeys(row["error"] for row in rows))
            )
        },
        spec={
            "width": {"step": 46},
            "height": {"step": 34},
            "layer": [
                {
                    "mark": "rect",
                    "encoding": {
                        **axes,
                        "color": field(
                            "share", "Q", "share", scale={"scheme": "oranges", "domain": [0, 1]}
                        ),
                        "tooltip": tooltips(COLUMNS),
                    },
                },
                {
                    "mark": "text",
                    "encoding": {
                        **axes,
                        "text": field("share", "Q", format=".2f"),
                        "color": readable("datum.share > 0.5"),
                    },
                },
            ],
        },
    )
