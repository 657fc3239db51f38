"""Glued passages are parted by the rules that splitting.py lists, and by no others."""

import json

import pytest

from hopscope.store.trajectories.splitting import RULES, part


@pytest.mark.parametrize(
    ("text", "rule", "passages"),
    [
        (
            'Doc 1(Title: "Rovmar (town)") On a river.\nIt has (2) bridges.\n'
            "Doc 2(Title: Zana) A port.\n",
            "doc_title",
            [("Rovmar (town)", "On a river.\nIt has (2) bridges."), ("Zana", "A port.")],
        ),
        (
            "(1)Rovmar   A town\n(3) lies elsewhere\n(2)Zana\tA port\n",
            "parentheses",
            [("Rovmar", "A town\n(3) lies elsewhere"), ("Zana", "A port")],
        ),
        ("(1)Title: Rovmar Text: A town", "parentheses", [("Rovmar", "A town")]),
        ("[0] A town\n[1] A port", "brackets", [("", "A town"), ("", "A port")]),
        (
            "Document 1:\nTitle: Rovmar\nA town\nDocument 2: A port",
            "words",
            [("", "Title: Rovmar\nA town"), ("", "A port")],
        ),
        ("A town\n---\nA port", "dashes", [("", "A town"), ("", "A port")]),
        ("A town\n\nTitle: Zana\nA port", "blank_lines", [("", "A town"), ("Zana", "A port")]),
        ("A town (1) with\n(1) port", "whole", [("", "A town (1) with\n(1) port")]),
    ],
)
def test_a_text_is_parted_by_the_first_rule_that_applies(
    text: str, rule: str, passages: list[tuple[str, str]]
) -> None:
    """A number in brackets within a passage parted it, if it was not the next one."""
    parted = part(text)
    assert parted.rule == rule
    assert [(each.get("title", ""), each["text"]) for each in parted.passages] == passages


def test_json_is_read_as_it_stands() -> None:
    listed = [{"text": "A town"}, {"text": "A port"}]
    assert part(json.dumps(listed)) == (listed, None)
    assert part(json.dumps({"results": listed})) == (listed, None)
    served = {"result": [{"document": {"contents": "A\nb"}, "score": 2.0}]}
    assert part(json.dumps(served)).passages == [{"contents": "A\nb", "score": 2.0}]


@pytest.mark.parametrize("text", ["", " \n", "(1)", "[1]\n[2]", "---"])
def test_nothing_is_no_passage(text: str) -> None:
    assert [each for each in part(text).passages if each["text"].strip("()[]12-\n ")] == []


def test_a_chosen_rule_is_the_only_one() -> None:
    assert part("A town\n\nA port", ["whole"]).rule == "whole"
    assert part("A town", ["dashes"]) == ([], None)
    assert RULES[-1] == "whole"
