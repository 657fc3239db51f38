from hopscope.runtime.prompting.prompts import chain_of_thought, short_answer
from hopscope.runtime.types import Passage

ONE, TWO = Passage(id="1", title="T", text="x y."), Passage(id="2", title="U", text="z.")


def test_longer_evidence_extends_the_prefix_of_shorter_evidence() -> None:
    short = short_answer("Q?", (ONE,)).messages[0].content
    longer = chain_of_thought("Q?", (ONE, TWO)).messages[0].content
    assert longer.startswith(short)


def test_without_evidence_only_the_documents_are_gone() -> None:
    with_, without = short_answer("Q?", (ONE,)), short_answer("Q?")
    assert with_.messages[1:] == without.messages[1:]
    assert with_.messages[0].content.startswith(without.messages[0].content)
    assert "Doc" not in without.text


def test_a_prompt_knows_which_passages_it_shows() -> None:
    assert chain_of_thought("Q?", (TWO, ONE)).shown == ("2", "1")


def test_thoughts_are_continued_not_quoted() -> None:
    prompt = chain_of_thought("Q?", (ONE,), ["A is b.", "B is c."])
    assert prompt.prefix == "A is b. B is c."
    assert "A is b." not in "".join(m.content for m in prompt.messages)
