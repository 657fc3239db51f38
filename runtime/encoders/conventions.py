"""The authors' rules of encoder families: the form of their input and the pooling of vectors.

With another family's rules an encoder works without an error and ranks worse, so an index records
its rules. Vectors are compared by inner product, which for vectors of length 1 is the cosine.
"""

from typing import Literal

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Passage, Record

Pooling = Literal["first", "mean", "head", "decoder"]
"""The vector of a text: the first token's last state, with the model's projection if it has one;
the mean of all tokens' last states, special ones included; the first token's through a linear layer
and layer normalisation (ANCE); the state of a decoder at its start token (T5)."""


class Convention(Record):
    """The rules of a family of encoders; the defaults are those of a plain BERT."""

    name: str
    pooling: Pooling = "mean"
    unit: bool = False
    """Whether vectors are scaled to length 1."""
    query: str = "{text}"
    """Template of a query."""
    passage: str = "{title} {text}"
    """Template of a passage; spaces at its ends are dropped."""
    pair: bool = False
    """Whether a title is a separate segment: title [SEP] text."""
    query_tokens: int = 512
    """Longer queries are cut, special tokens included."""
    passage_tokens: int = 512
    source: str
    """The documentation of the rules."""

    def write_query(self, text: str) -> str:
        """The encoder's input for a query."""
        return self.query.format(text=text)

    def write_passage(self, passage: Passage) -> tuple[str, str | None]:
        """The encoder's input for a passage: a text, and a second segment if there is one."""
        if self.pair:
            return (passage.title, passage.text) if passage.title else (passage.text, None)
        return self.passage.format(title=passage.title, text=passage.text).strip(), None


CONVENTIONS = (
    Convention(
        name="aar-ance",
        pooling="decoder",
        passage="Title: {title} Text: {text}",
        query_tokens=32,
        passage_tokens=128,
        source="Yu et al. 2023 (arXiv 2305.17331); OpenMatch/AAR-ANCE, a T5, and its scripts",
    ),
    Convention(
        name="aar-contriever",
        passage="Title: {title} Text: {text}",
        query_tokens=32,
        passage_tokens=128,
        source="Yu et al. 2023 (arXiv 2305.17331); OpenMatch/AAR-Contriever-KILT and its scripts",
    ),
    Convention(
        name="ance",
        pooling="head",
        query_tokens=64,
        passage_tokens=256,
        source="Xiong et al. 2021 (arXiv 2007.00808); castorini/ance-* with pyserini's lengths",
    ),
    Convention(
        name="bge",
        pooling="first",
        unit=True,
        query="Represent this sentence for searching relevant passages: {text}",
        source="Xiao et al. 2023 (arXiv 2309.07597); model card of BAAI/bge-base-en-v1.5",
    ),
    Convention(
        name="contriever",
        source="Izacard et al. 2022 (arXiv 2112.09118); facebookresearch/contriever",
    ),
    Convention(
        name="dpr",
        pooling="first",
        pair=True,
        query_tokens=256,
        passage_tokens=256,
        source="Karpukhin et al. 2020 (arXiv 2004.04906); facebookresearch/DPR: title and text are "
        "two segments with segment numbers 0, sequence length 256",
    ),
    Convention(
        name="e5",
        unit=True,
        query="query: {text}",
        passage="passage: {title} {text}",
        source="Wang et al. 2022 (arXiv 2212.03533); model card of intfloat/e5-base-v2",
    ),
    Convention(
        name="minilm",
        unit=True,
        query_tokens=256,
        passage_tokens=256,
        source="model card of sentence-transformers/all-MiniLM-L6-v2, max_seq_length 256",
    ),
)


def named(name: str) -> Convention:
    """The rules of that name.

    Raises:
        UsageError: the name is unknown; the message lists the known ones.
    """
    known = {convention.name: convention for convention in CONVENTIONS}
    if name not in known:
        raise UsageError(f"no encoder convention {name!r}: choose from {', '.join(known)}")
    return known[name]
