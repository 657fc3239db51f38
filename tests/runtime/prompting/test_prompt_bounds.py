"""A template that would never end, or make a text that no memory holds, is refused at once."""

from pathlib import Path
from time import thread_time

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.prompting import loading, sandbox
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Passage
from tests.runtime.prompting.test_prompt_sets import written

MANY = "range(100000)"
LOOPS = "are there loops within loops?"
LARGE = "too large for a prompt"
LONG = "the prompt is longer than"
DOUBLED = (
    "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = JOINED %}{% endfor %}"
)
MACRO = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}"
RECURSIVE = (
    "{% for a in [1, 2] recursive %}{% if loop.depth < 40 %}{{ loop([1, 2]) }}{% endif %}"
    "{% endfor %}"
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"{{% for a in {MANY} %}}{{% for b in {MANY} %}}x{{% endfor %}}{{% endfor %}}", LOOPS),
        (f"{{% for a in {MANY} if {MANY} | sum < 0 %}}x{{% endfor %}}", LOOPS),
        (f"{{% for a in {MANY} %}}{{% if {MANY} | sum < 0 %}}x{{% endif %}}{{% endfor %}}", LOOPS),
        (MACRO, LOOPS),
        (RECURSIVE, LOOPS),
        (f"{{% for a in {MANY} %}}{'long ' * 1000}{{% endfor %}}", LONG),
        (f"{{% for a in {MANY} %}}{{{{ 'x' * 10000 }}}}{{% endfor %}}", LONG),
        (DOUBLED.replace("JOINED", "n.x ~ n.x"), LONG),
        (DOUBLED.replace("JOINED", "n.x + n.x"), LONG),
        (DOUBLED.replace("JOINED", "[n.x, n.x] | join"), LONG),
        ("{{ ('x' * 1000000) | replace('x', 'y' * 1000000) }}", LARGE),
        ("{{ ('x' * 1000000).replace('x', 'y' * 1000000) }}", LARGE),
        (f"{{{{ ('x' * 1000000).join({MANY} | map('string') | list) }}}}", LOOPS),
        ("{{ 'x' | center(10 ** 10) }}", LARGE),
        ("{{ 'x'.ljust(1000 * 1000 * 10) }}", LARGE),
        ("{{ ('a\n' * 500000) | indent(900) }}", LARGE),
        ("{{ ('a\n' * 500000) | indent(width=1000000) }}", LARGE),
        ("{{ ('\t' * 1000000).expandtabs(900) }}", LARGE),
        ("{{ ('\t' * 1000000).expandtabs(tabsize=900) }}", LARGE),
        ("{{ range(100000) | list | tojson(indent=1000) }}", LARGE),
        ("{{ ('x' * 1000000) | replace('x', 'y' * 1000) }}", LARGE),
        ("{{ ('y' * 1000).join('x' * 1000000) }}", LARGE),
        ("{{ '%9999999999d' % 1 }}", LARGE),
        ("{{ '%9999999999d' | format(1) }}", LARGE),
        ("{{ '{:9999999999}'.format(1) }}", LARGE),
        ("{{ [1] | batch(10 ** 10, 'x') | list }}", LARGE),
        ("{{ lipsum(n=1000000) }}", "'lipsum' is no value"),
        (DOUBLED.replace("JOINED", "[n.x, n.x]") + "{{ n.x }}", LARGE),
        (DOUBLED.replace("JOINED", "(n.x, n.x)") + "{{ n.x | string }}", LARGE),
        (DOUBLED.replace("JOINED", "[n.x] * 2") + "{{ n.x == [1] }}", LARGE),
        (DOUBLED.replace("JOINED", "dict(a=n.x, b=n.x)"), LARGE),
        (DOUBLED.replace("JOINED", "namespace(a=n.x, b=n.x)") + "{{ n.x }}", LARGE),
        ("{{ ('%(a)999999d' * 50) % {'a': 1} }}", LARGE),
        ("{{ ('{0:999999}' * 50).format(1) }}", LARGE),
        ("{{ 'x'.encode().replace('x'.encode(), 'y'.encode()) }}", "encode"),
        ("{% include 'naive/answer.jinja' %}", "RecursionError"),
    ],
)
def test_a_template_without_an_end_is_refused(body: str, said: str, tmp_path: Path) -> None:
    folder = written(tmp_path, naive__answer=f"{{% user %}}\n{body}\n{{% enduser %}}")
    begun = thread_time()
    with pytest.raises(UsageError, match=r"answer\.jinja, line [123]: ") as caught:
        loading.load(str(folder))
    assert said in str(caught.value)
    assert thread_time() - begun < 5


def test_a_prompt_may_take_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "SECONDS", 0.0)
    text = "{% user %}{% for a in range(99) %}{{ a }}{% endfor %}{% enduser %}"
    with pytest.raises(UsageError, match="takes longer than 0 seconds"):
        loading.load(str(written(tmp_path, naive__answer=text)))


def test_long_passages_are_no_mistake() -> None:
    """Whether they fit is the reader's to say."""
    long = [Passage(id=str(n), text="x" * 10_000_000) for n in range(9)]
    made = DEFAULT_PROMPTS.render("naive/answer", long, question="Who?")
    assert len(made.messages[0].content) > 90_000_000


def test_numbers_in_passages_are_no_widths(tmp_path: Path) -> None:
    text = "{% user %}{{ question | replace('a', 'b') | trim }}{% enduser %}"
    made = loading.load(str(written(tmp_path, naive__answer=text))).render(
        "naive/answer", question="%123456789d a {123456789}"
    )
    assert made.messages[0].content == "%123456789d b {123456789}"


def test_what_loops_and_joins_do_is_as_in_jinja2(tmp_path: Path) -> None:
    text = (
        "{% user %}{% for a in [1, 2, 3, 4] if a != 2 %}{{ loop.index }}/{{ loop.length }}"
        "{{ '.' if loop.last else ' ' ~ a ~ '+' }}{% else %}none{% endfor %}"
        "{{ ['a' ~ 1] + ['b'] }}{{ '%s-%s' % (1, 2) }}{{ '{:3}|'.format(4) }}"
        "{% set x %}{% for c in 'xyz' %}{{ c }}{% endfor %}{% endset %}{{ x | upper }}{% enduser %}"
    )
    made = loading.load(str(written(tmp_path, naive__answer=text))).render("naive/answer")
    assert made.messages[0].content == "1/3 1+2/3 3+3/3.['a1', 'b']1-2  4|XYZ"
