"""The one grammar of texts that name components."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec, listed, pairs

ODD = st.text(alphabet="ak5:/.-_é \"',=\n\\#", max_size=12)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.#-]{0,6}", fullmatch=True)
KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,2}", fullmatch=True)
OPTIONS = st.dictionaries(KEYS, ODD, max_size=3).map(lambda found: tuple(found.items()))
SPECS = st.builds(Spec, NAMES, ODD, OPTIONS)


@given(SPECS)
def test_the_canonical_text_is_read_as_the_same_spec(spec: Spec) -> None:
    assert Spec.parse(str(spec)) == spec


@given(st.builds(Spec, NAMES, options=OPTIONS))
def test_so_it_is_without_arguments(spec: Spec) -> None:
    assert Spec.parse(str(spec), argument=False) == spec
    if spec.options:
        assert Spec.parse(str(spec).replace(",", ":", 1), argument=False) == spec


@given(NAMES, ODD)
def test_without_options_all_behind_the_colon_is_the_argument(name: str, argument: str) -> None:
    assert Spec.parse(f"{name}:{argument}", options=False) == Spec(name, argument)


@given(ODD)
def test_any_text_is_a_spec_or_is_refused_with_the_place(text: str) -> None:
    try:
        spec = Spec.parse(text)
    except UsageError as error:
        if ", character " not in str(error):
            raise
    else:
        assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "name", "argument", "options"),
    [
        ("tiny", "tiny", "", {}),
        ("tiny,prefix_cache=2MB", "tiny", "", {"prefix_cache": "2MB"}),
        ("hf:FOLDER", "hf", "FOLDER", {}),
        (
            "hf:FOLDER,dtype=bfloat16,cache=answers.db",
            "hf",
            "FOLDER",
            {"dtype": "bfloat16", "cache": "answers.db"},
        ),
        ("hf:org/model-7B", "hf", "org/model-7B", {}),
        ("hf:FOLDER,cache=sqlite:///a.db?b=c", "hf", "FOLDER", {"cache": "sqlite:///a.db?b=c"}),
        (
            "openai:http://127.0.0.1:8000/v1#org/model:latest,api=chat",
            "openai",
            "http://127.0.0.1:8000/v1#org/model:latest",
            {"api": "chat"},
        ),
        ("hf:/data/a=b/c,d:e f", "hf", "/data/a=b/c,d:e f", {}),
        ("hf:/data/my,Model=1", "hf", "/data/my,Model=1", {}),
        ("hf:/data/end,,dtype=x", "hf", "/data/end,dtype=x", {}),
        ("hf:/data/end,,,dtype=x", "hf", "/data/end,", {"dtype": "x"}),
        (r"hf:C:\models\new,dtype=float32", "hf", r"C:\models\new", {"dtype": "float32"}),
        (r"C:\models", "C", r"\models", {}),
        ("judge:hf:FOLDER,dtype=x", "judge", "hf:FOLDER", {"dtype": "x"}),
        ("nli:FOLDER,device=cuda", "nli", "FOLDER", {"device": "cuda"}),
        ("value:policy.json,threshold=0.1", "value", "policy.json", {"threshold": "0.1"}),
        ("dpr:first,second", "dpr", "first,second", {}),
        ("part.py#0123456789abcdef:x,k=3", "part.py#0123456789abcdef", "x", {"k": "3"}),
        ("openai:http://h/v1#m,omit=seed,stop", "openai", "http://h/v1#m", {"omit": "seed,stop"}),
    ],
)
def test_real_texts(text: str, name: str, argument: str, options: dict[str, str]) -> None:
    spec = Spec.parse(text)
    assert spec == Spec(name, argument, tuple(options.items()))
    assert str(spec) == text


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("naive", "naive", {}),
        ("ircot:k=4,max_steps=3", "ircot", {"k": "4", "max_steps": "3"}),
        ("ircot:policy=random:0.5", "ircot", {"policy": "random:0.5"}),
        ("eor:pool=a@5,b@RR@3&c@CP", "eor", {"pool": "a@5,b@RR@3&c@CP"}),
        ("eor:similarities=em=1,,nli=0.5", "eor", {"similarities": "em=1,nli=0.5"}),
        ("eor:sources=SE=searxng:URL,k=2", "eor", {"sources": "SE=searxng:URL", "k": "2"}),
        ("part.py#0123456789abcdef:k=3", "part.py#0123456789abcdef", {"k": "3"}),
    ],
)
def test_options_stand_behind_the_colon_where_there_is_no_argument(
    text: str, name: str, options: dict[str, str]
) -> None:
    assert Spec.parse(text, argument=False) == Spec(name, options=tuple(options.items()))


def test_an_empty_argument_is_none() -> None:
    assert Spec.parse("tiny:") == Spec("tiny")
    assert str(Spec.parse("tiny:,device=cpu")) == "tiny,device=cpu"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'', character 1: expected a name, found the end"),
        (":x", "':x', character 1: expected a name, found ':x'"),
        ("tiny,", "'tiny,', character 6: expected an option, as in KEY=VALUE, found the end"),
        ("tiny,fast", "character 6: expected an option, as in KEY=VALUE, found 'fast'"),
        ("tiny,,k=1", "character 6: expected an option, as in KEY=VALUE, found ',k=1'"),
        ("hf:F,k=1,j=2,k=3", "character 14: expected each option once, not k again, found 'k=3'"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        Spec.parse(text)
    assert str(refused.value).endswith(problem)


@pytest.mark.parametrize(("text", "place"), [("naive:", 7), ("naive:4", 7), ("naive:4,k=3", 7)])
def test_what_is_no_option_behind_the_colon_is_refused(text: str, place: int) -> None:
    with pytest.raises(UsageError, match=f"character {place}: expected an option"):
        Spec.parse(text, argument=False)


def test_options_behind_a_spec_in_a_spec_are_those_of_the_inner() -> None:
    inner = Spec.parse("judge:hf:FOLDER,dtype=x").inner
    assert inner == Spec("hf", "FOLDER", (("dtype", "x"),))
    assert Spec.parse("judge:judge:tiny,k=1").inner.inner == Spec("tiny", options=(("k", "1"),))
    with pytest.raises(UsageError, match="option dtype is given twice"):
        assert Spec("judge", "hf:FOLDER,dtype=x", (("dtype", "y"),)).inner


def test_options_one_by_one_hold_anything() -> None:
    assert pairs(["k=4", "pool=a,b=c", "x="]) == {"k": "4", "pool": "a,b=c", "x": ""}
    with pytest.raises(UsageError, match="'k' is not of the form key=value"):
        pairs(["k"])
    with pytest.raises(UsageError, match="'k' is given twice"):
        pairs(["k=1", "k=1"])


def test_names_with_values_are_listed() -> None:
    assert listed("em=1, nli = 0.5,exact", "similarity") == {"em": "1", "nli": "0.5", "exact": ""}
    assert listed("SE=searxng:http://h:8/x?a=b,", "source") == {"SE": "searxng:http://h:8/x?a=b"}
    assert listed("", "source") == {}
    with pytest.raises(UsageError, match="character 6: expected each similarity once, not em"):
        listed("em=1,em=2", "similarity")
    with pytest.raises(UsageError, match="character 5: expected the name of a source"):
        listed("a=b,=c", "source")
