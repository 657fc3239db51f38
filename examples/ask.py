"""Ask a question and see the worth of each retrieval. Needs no network and no model of your own."""

import hopscope

with hopscope.Session(store="sqlite://") as session:
    run = session.ask(
        "What is the headquarters city of the company that employs Elsa Wilby?",
        gold="Grand Rovmar",
    )
    run.show()
    total = next(row for row in run.credits if (row.meter, row.rule) == ("seper", "total"))
    print(f"All retrievals together: {total.value:+.2f} [{total.low:+.2f}, {total.high:+.2f}]")
