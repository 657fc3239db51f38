"""Let a policy decide before each retrieval whether it is worth its price."""

import hopscope

QUESTION = "What is the headquarters city of the company that employs Elsa Wilby?"

with hopscope.Session(store="sqlite://", meters=()) as session:
    free = session.ask(QUESTION)

with hopscope.Session(
    store="sqlite://", meters=(), policy="fixed:2", limits=hopscope.Limits(tokens=2000)
) as session:
    thrifty = session.ask(QUESTION)

for name, run in (("native", free), ("fixed:2", thrifty)):
    print(f"{name}: {run.answer} ({run.usage.tokens} tokens)")
