"""Retrieve with a function of your own: any callable from (query, k) to passages."""

import hopscope

FACTS = (
    "Elsa Wilby works for Salwin Pictures.",
    "Salwin Pictures is based in Grand Rovmar.",
    "Grand Rovmar lies on the river Ilm.",
)


def search(query: str, k: int) -> list[str]:
    """The facts that share most words with the query, best first."""
    words = set(query.lower().strip("?.").split())

    def shared(fact: str) -> int:
        return len(words & set(fact.lower().strip(".").split()))

    return sorted(FACTS, key=shared, reverse=True)[:k]


with hopscope.Session(retriever=search, store="sqlite://") as session:
    run = session.ask("Where does Elsa Wilby work?", gold="Salwin Pictures", workflow="naive", k=2)
    print(run.answer)
    for row in run.credits:
        if row.rule == "shapley" and row.meter == "seper":
            print(f"step {row.step}: {row.value}")
