"""JUnit XML, which servers for continuous integration show.

XML 1.0 has no form for control characters; `line` removes them from all text.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from hopscope.runtime.texts.storable import line


class Case(NamedTuple):
    """A test case."""

    group: str
    name: str
    outcome: Literal["passed", "failure", "skipped"]
    message: str


def junit(
    name: str, cases: Sequence[Case], *, properties: Mapping[str, str], notes: Sequence[str]
) -> str:
    """A document with one suite."""
    outcomes = [case.outcome for case in cases]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": "0",
        "skipped": str(outcomes.count("skipped")),
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": line(name), **counts})
    kept = ElementTree.SubElement(suite, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(kept, "property", {"name": key, "value": line(value)})
    for case in cases:
        named = {"classname": line(case.group), "name": line(case.name)}
        element = ElementTree.SubElement(suite, "testcase", named)
        said = line(case.message)
        if case.outcome == "passed":
            ElementTree.SubElement(element, "system-out").text = said
        else:
            ElementTree.SubElement(element, case.outcome, {"message": said})
    ElementTree.SubElement(suite, "system-out").text = "\n".join(map(line, notes))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
