"""A report in one file: the pictures and tables of a run or an experiment, to send to somebody.

It loads nothing from elsewhere: its policy forbids it, and allows only its own two scripts and its
style, by their hashes.
"""

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

from hopscope import __version__
from hopscope.runtime.errors import MissingRunError, UsageError
from hopscope.store.store import Store
from hopscope.view import experiment_page, run_page
from hopscope.view.drawing import script
from hopscope.view.experiment_figures import ExperimentRecords
from hopscope.view.html import asset, render
from hopscope.view.run_figures import RunRecords


def report(store: Store, source: str) -> str:
    """The page of a run, by id, its beginning or `last`, or of an experiment, by name.

    Raises:
        UsageError: there is no such run or experiment, or nothing of it is done yet.
        MissingExtraError: the extra `view` is not installed.
    """
    if store.experiments.known(source) is not None:
        records = ExperimentRecords(store, source)
        return page("experiment_content.html", experiment_page.content(store, records))
    try:
        found = RunRecords.load(store, source)
    except MissingRunError:
        names = ", ".join(each.name for each in store.experiments.all()[:10]) or "none"
        raise UsageError(
            f"no run or experiment {source!r} in {store.name}: `hopscope ls` lists the runs; "
            f"experiments: {names}"
        ) from None
    return page("run_content.html", {**run_page.content(found), "what_if": False})


def page(content: str, values: dict[str, Any]) -> str:
    """The file: the template with its scripts, style and policy inside."""
    from markupsafe import Markup

    vega, js, css = _inline(script()), _inline(asset("view.js")), asset("view.css")
    hashes = " ".join(map(_hash, (vega, js)))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(css)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return render(
        "report.html",
        **values,
        content=content,
        policy=policy,
        version=__version__,
        vega=Markup(vega),
        js=Markup(js),
        css=Markup(css),
    )


def _inline(code: str) -> str:
    """A script that nothing in it ends."""
    return re.sub(r"</(?=script)", r"<\\/", code, flags=re.IGNORECASE)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
