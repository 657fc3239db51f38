"""What all records share: they are frozen, and their text can be stored."""

import hashlib
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from hopscope.runtime.texts.storable import storable


def _storable_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    # Checking the tokens of a reply one by one would take ten times as long.
    return texts if "".join(texts).isascii() else tuple(map(storable, texts))


Text = Annotated[str, AfterValidator(storable)]
"""The type of a field that holds text from outside."""
Texts = Annotated[tuple[str, ...], AfterValidator(_storable_texts)]
"""The type of a field that holds several such texts."""


def digest(*parts: str) -> str:
    """Hex SHA-256 of the parts, each length-prefixed so that no two lists of parts collide."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")  # settings may hold text that is not storable
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()


class Record(BaseModel):
    """The base of all records: frozen, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
