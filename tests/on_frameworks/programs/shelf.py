"""What the programs share: two passages of a fictional world, and a file of spans."""

import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

QUESTION = "Who is the mayor of the filming place of Flower of Yalhal?"
ANSWER = "Cleo Marwick"
QUERIES = ("Flower of Yalhal", "Port Hellon mayor")
PASSAGES = {
    "film": "Flower of Yalhal was filmed in Port Hellon.",
    "town": "The mayor of Port Hellon is Cleo Marwick.",
}


def found(query: str) -> list[tuple[str, str]]:
    """The ids and texts of the passages for a query, the best first."""
    order = ["film", "town"] if "Yalhal" in query else ["town", "film"]
    return [(id, PASSAGES[id]) for id in order]


class File(SpanExporter):
    """Appends spans as OpenTelemetry's SDK prints them."""

    def __init__(self, path: str) -> None:
        self._path = path

    def export(self, spans):  # type: ignore[no-untyped-def]
        with open(self._path, "a", encoding="utf-8") as file:
            for span in spans:
                file.write(span.to_json(indent=None) + "\n")
        return SpanExportResult.SUCCESS


def provider() -> TracerProvider:
    """Writes every span into the file that the command line names."""
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(File(sys.argv[1])))
    return made
