"""A web search through a SearXNG-compatible service: its JSON answers as passages.

A passage is a result's title and snippet; its id is the result's address. Only the service that the
user named is contacted: result pages are not fetched, redirects are not followed, and
proxies of the environment are not used. A SearXNG instance answers in JSON only if `json` is among
`search.formats` in its settings.
"""

from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, Request

from hopscope import __version__
from hopscope.runtime.addresses import http_parts
from hopscope.runtime.errors import RetrieverError, UsageError
from hopscope.runtime.ports import Retriever
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Hit, Passage

LARGEST = 16 << 20  # bytes of one answer


class SearXNG:
    """Requests page by page until there are enough results."""

    def __init__(
        self, url: str, parameters: Mapping[str, str], *, timeout: float, max_pages: int
    ) -> None:
        self.name = f"searxng:{url}"
        self._url = url
        self._parameters = parameters
        self._timeout = timeout
        self._max_pages = max_pages

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """See the port. Scores are the service's, else 1, 1/2, 1/3, ... by place.

        Raises:
            RetrieverError: the service cannot be reached, refuses, or does not answer in JSON.
        """
        return [self._find(query, k) for query in queries]

    def _find(self, query: str, k: int) -> list[Hit]:
        hits: dict[str, Hit] = {}
        for page in range(1, self._max_pages + 1):
            if len(hits) >= k or not query.strip():
                break
            results = self._ask(query, page)
            known = len(hits)
            for result in results:
                if hit := _hit(result, place=len(hits) + 1, source=self.name):
                    hits.setdefault(hit.passage.key, hit)
            if len(hits) == known:
                break
        return list(hits.values())[:k]

    def _ask(self, query: str, page: int) -> list[Any]:
        fields = {**self._parameters, "q": query, "format": "json", "pageno": str(page)}
        headers = {"Accept": "application/json", "User-Agent": f"hopscope/{__version__}"}
        request = Request(f"{self._url}?{urlencode(fields)}", headers=headers)
        # Not `build_opener`: it would add proxies, redirects, and handlers of files.
        opener = OpenerDirector()
        opener.add_handler(HTTPHandler())
        opener.add_handler(HTTPSHandler())
        try:
            with opener.open(request, timeout=self._timeout) as response:
                status, body = response.status, response.read(LARGEST + 1)
        except TimeoutError:
            self._fail(f"gave no answer within {self._timeout:g} seconds")
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, TimeoutError):
                self._fail(f"gave no answer within {self._timeout:g} seconds")
            self._fail(f"cannot be reached: {reason}")
        if status != 200:
            self._refuse(status)
        if len(body) > LARGEST:
            self._fail(f"answered with more than {LARGEST >> 20} MiB")
        try:
            results = json_value(body)["results"]
        except (ValueError, TypeError, KeyError):
            results = None
        if not isinstance(results, list):
            self._fail(
                "did not answer with a JSON object that has results: is this the search address, "
                "and is json among the formats of its settings?"
            )
        return results

    def _refuse(self, status: int) -> NoReturn:
        advice = {
            403: ": add json to search.formats in its settings",
            404: ": give the address of its search, such as http://HOST/search",
            429: ": it limits requests; wait, or turn off its limiter",
        }
        moved = ": it sends elsewhere; give that address" if 300 <= status < 400 else ""
        self._fail(f"answered with status {status}{advice.get(status, moved)}")

    def _fail(self, problem: str) -> NoReturn:
        raise RetrieverError(f"search service {self._url} {problem}")


def _hit(result: Any, *, place: int, source: str) -> Hit | None:
    """The hit of a result; None if it has neither title nor snippet."""
    if not isinstance(result, dict):
        return None
    title, text, url = (_text(result.get(key)) for key in ("title", "content", "url"))
    if not (text or title):
        return None
    score = result.get("score")
    given = isinstance(score, int | float) and abs(score) < float("inf")
    passage = Passage(id=url, title=title if text else "", text=text or title, source=source)
    return Hit(passage=passage, score=float(score) if given and score else 1 / place)


def _text(value: Any) -> str:
    return " ".join(storable(value).split()) if isinstance(value, str) else ""


def build(
    *,
    url: str,
    timeout: float = 10.0,
    language: str = "",
    engines: str = "",
    categories: str = "",
    safesearch: int | None = None,
    max_pages: int = 5,
) -> Retriever:
    """Nothing is sent before the first search.

    Args:
        url: address of the service or of its search; without a path, /search is added.
        timeout: seconds to wait for each answer.
        language: a code such as en; the service's own choice if empty.
        engines: the service's engines to use, separated by commas.
        categories: categories of results, separated by commas.
        safesearch: 0, 1 or 2.
        max_pages: most pages of results to request.

    Raises:
        UsageError: the address, `timeout` or `max_pages` is invalid.
    """
    parts = http_parts(url)
    if not parts or parts.query or parts.fragment or parts.username or parts.password:
        raise UsageError(f"search service {url!r}: give its address as http://HOST or https://HOST")
    if not 0 < timeout < float("inf") or max_pages < 1:
        raise UsageError("search service: timeout must be more than 0, max_pages 1 or more")
    chosen = {
        "language": language,
        "engines": engines,
        "categories": categories,
        "safesearch": "" if safesearch is None else str(safesearch),
    }
    path = parts.path if parts.path.strip("/") else "/search"
    return SearXNG(
        f"{parts.scheme}://{parts.netloc}{path}",
        {key: value for key, value in chosen.items() if value},
        timeout=timeout,
        max_pages=max_pages,
    )
