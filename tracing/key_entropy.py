"""KeyEntropy of a draft: the mean entropy over the tokens that the documents change, in nats.

The same as in GroGU's meter (see `tracing.meters.grogu`), of a draft that is there already: all it
takes is scoring the draft once without documents, and nothing for a closed-book one.

Source: GroGU (2026), section 3.2 and appendix C.1.
"""

from hopscope.runtime.errors import NotOffered
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompts import short_answer
from hopscope.runtime.types import Generation, Question, ScoreRequest
from hopscope.tracing import key_tokens

ALPHA, TOP = 0.05, 0.1
"""As GroGU's."""


def key_entropy(
    question: Question, found: Generation, reader: Reader, *, grounded: bool
) -> float | None:
    """None where the reader does not tell what it takes.

    Args:
        grounded: whether the draft was written from documents.

    Raises:
        ReaderError: the model failed.
    """
    values = found.entropies
    if not found.tokens or len(values) != len(found.tokens):
        return None
    if not grounded:
        keys = key_tokens.ungrounded_keys(values, ALPHA, TOP)
    else:
        request = ScoreRequest(
            prompt=short_answer(question.text), continuation=found.text, token_ids=found.token_ids
        )
        try:
            [without] = reader.score([request])
        except NotOffered:
            return None
        if without.approx != found.approx or len(without.entropies) != len(values):
            return None
        keys = key_tokens.grounded_keys(values, without.entropies, ALPHA, TOP)
    return key_tokens.entropy([values[i] for i in keys])
