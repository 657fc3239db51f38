"""KeyEntropy of a draft: the mean entropy over the tokens that the documents change, in nats.

The same as in GroGU's meter (see `tracing.meters.grogu`), for an existing draft: the cost is one
scoring of the draft without documents, and nothing for a closed-book draft.

Source: GroGU (2026), section 3.2 and appendix C.1.
"""

from hopscope.runtime.errors import CapabilityError
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Generation, Prompt, ScoreRequest
from hopscope.tracing.meters.grogu import key_tokens

ALPHA, TOP = 0.05, 0.1
"""As GroGU's."""


def key_entropy(
    closed_book: Prompt, draft: Generation, reader: Reader, *, grounded: bool
) -> float | None:
    """The value in nats; None if the reader gives no entropies or cannot score.

    Args:
        closed_book: the draft's prompt without documents.
        grounded: whether the draft was written from documents.

    Raises:
        ReaderError: the model failed.
    """
    values = draft.entropies
    if not draft.tokens or len(values) != len(draft.tokens):
        return None
    if not grounded:
        keys = key_tokens.ungrounded_keys(values, ALPHA, TOP)
    else:
        request = ScoreRequest(
            prompt=closed_book, continuation=draft.text, token_ids=draft.token_ids
        )
        try:
            [without] = reader.score([request])
        except CapabilityError:
            return None
        if without.approx != draft.approx or len(without.entropies) != len(values):
            return None
        keys = key_tokens.grounded_keys(values, without.entropies, ALPHA, TOP)
    return key_tokens.entropy([values[i] for i in keys])
