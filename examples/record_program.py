"""Record a program of your own, and measure the worth of each of its searches."""

import hopscope

FACTS = {
    "Grand Rovmar": "Grand Rovmar lies on the river Ilm.",
    "Elsa Wilby": "Elsa Wilby is employed by Salwin Pictures.",
}
QUESTION = "What company employs Elsa Wilby?"


@hopscope.retrieval
def search(query: str) -> list[str]:
    return [fact for title, fact in FACTS.items() if title in query]


def application(question: str) -> str:
    """Searches twice, and reads the answer out of what it has found."""
    found = [*search("Grand Rovmar"), *search(question)]
    return found[-1].split(" by ")[-1].strip(".")


with hopscope.Store.open("sqlite://") as store:
    with hopscope.recording(QUESTION, gold="Salwin Pictures", store=store) as run:
        run.answer = application(QUESTION)
    with hopscope.Session(store=store) as session:
        for row in session.credit(run.id, meters=["seper"], rules=["shapley"]):
            if row.rule == "shapley" and row.name == "search":
                print(f"search {row.step}: {row.value:+.2f}")
    store.run(run.id).show()
