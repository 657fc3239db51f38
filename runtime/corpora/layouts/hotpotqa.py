"""Questions of HotpotQA and 2WikiMultiHopQA, with their passages in `context`.

Sources: Yang et al. 2018, arXiv 1809.09600; Ho et al. 2020, arXiv 2011.01060. As released, the
context is `[[title, [sentence, ...]], ...]`; the `datasets` library gives `{"title": [...],
"sentences": [[...], ...]}`. A passage is the sentences with one space between them: HotpotQA's
begin with a space, 2Wiki's do not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hopscope.runtime.corpora.records.fields import strings
from hopscope.runtime.corpora.records.reading import MalformedRecordError, PassageDraft


def matches(value: Mapping[str, Any]) -> bool:
    return "question" in value and "context" in value


def read(value: Mapping[str, Any]) -> Iterator[PassageDraft]:
    context = value.get("context")
    if isinstance(context, Mapping):
        titles, texts = context.get("title"), context.get("sentences")
        if not isinstance(titles, list) or not isinstance(texts, list) or len(titles) != len(texts):
            raise MalformedRecordError(
                "'context' must have as many 'sentences' as it has a 'title'"
            )
        context = list(zip(titles, texts, strict=True))
    if not isinstance(context, list):
        raise MalformedRecordError("'context' must be a list of [title, sentences]")
    for paragraph in context:
        if not isinstance(paragraph, list | tuple) or len(paragraph) != 2:
            raise MalformedRecordError("'context' must be a list of [title, sentences]")
        title, sentences = paragraph
        if not isinstance(title, str):
            raise MalformedRecordError("a title in 'context' must be a string")
        stripped = (sentence.strip() for sentence in strings(sentences, "'context'"))
        if text := " ".join(filter(None, stripped)):
            yield PassageDraft(text, title)
