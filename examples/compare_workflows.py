"""Compare workflows on the same questions: how often they are right, at which cost."""

import hopscope

QUESTIONS = (
    ("What is the headquarters city of the company that employs Elsa Wilby?", "Grand Rovmar"),
    ("What company employs Elsa Wilby?", "Salwin Pictures"),
    ("What is the headquarters city of Salwin Pictures?", "Grand Rovmar"),
)

with hopscope.Session(store="sqlite://", meters=[]) as session:
    for workflow in ("closed_book", "naive", "ircot"):
        runs = [session.ask(text, gold=gold, workflow=workflow) for text, gold in QUESTIONS]
        right = sum(run.answer in run.question.answers for run in runs)
        tokens = sum(run.usage.tokens for run in runs)
        print(f"{workflow:12} {right} of {len(runs)} right, {tokens} tokens")
