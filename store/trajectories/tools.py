"""The tools of an agent that search."""

from collections.abc import Iterable, Iterator

NAMED = 20
"""Names of other tools that the advice lists."""


class SearchTools:
    """Tells the tools that search by their names, and remembers which were called."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """
        Args:
            names: empty for all tools.
        """
        self._searching = dict.fromkeys(names, False)
        self._others: dict[str, None] = {}

    def search(self, name: str) -> bool:
        """Whether the tool of this name, which was called, searches."""
        if not self._searching:
            return True
        if name in self._searching:
            self._searching[name] = True
        elif len(self._others) < NAMED:
            self._others[name] = None
        return self._searching.get(name, False)

    def advice(self) -> Iterator[str]:
        """Names of `tools` that no call had."""
        absent = [name for name, called in self._searching.items() if not called]
        if absent:
            others = ", ".join(self._others) or "none"
            yield (
                f"tools={' '.join(absent)}: nothing calls a tool of that name; other tools that "
                f"are called: {others}"
            )
