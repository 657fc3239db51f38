"""Specifications drawn by vl-convert, without a browser and offline."""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Literal

from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.view.pictures.specification import Spec

EXTRA = "view"
VEGA_LITE = "6.4"
Form = Literal["svg", "png", "pdf"]
FORMS: tuple[Form, ...] = ("svg", "png", "pdf")
DENSITY = 2.0
"""Pixels of a PNG for each point."""


def form_of(path: Path) -> Form:
    """
    Raises:
        UsageError: the name ends in no form that can be drawn.
    """
    ending = path.suffix.removeprefix(".").lower()
    for form in FORMS:
        if form == ending:
            return form
    raise UsageError(f"{path}: the name must end in .svg, .png or .pdf")


def draw(spec: Spec, form: Form) -> bytes:
    """The picture; PDF embeds its fonts.

    Raises:
        MissingExtraError: vl-convert is not installed.
    """
    convert = converter()
    plain = {**spec, "background": "white"}
    if form == "svg":
        text: str = convert.vegalite_to_svg(plain, vl_version=VEGA_LITE, allowed_base_urls=[])
        return text.encode()
    if form == "png":
        png: bytes = convert.vegalite_to_png(
            plain, vl_version=VEGA_LITE, scale=DENSITY, allowed_base_urls=[]
        )
        return png
    pdf: bytes = convert.vegalite_to_pdf(plain, vl_version=VEGA_LITE, allowed_base_urls=[])
    return pdf


@cache
def converter() -> ModuleType:
    """
    Raises:
        MissingExtraError: vl-convert is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("drawing", EXTRA) from None
    return vl_convert


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script.

    Bundling takes seconds, so it is kept in the user's cache folder, under the version's name.

    Raises:
        MissingExtraError: vl-convert is not installed.
    """
    from importlib.metadata import version

    from platformdirs import user_cache_path

    convert = converter()
    name = f"vega-{version('vl-convert-python')}-{VEGA_LITE}.js"
    kept = user_cache_path("hopscope") / name
    if kept.is_file():
        return kept.read_text(encoding="utf-8")
    bundled: str = convert.javascript_bundle(vl_version=VEGA_LITE)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(".unfinished")
        unfinished.write_text(bundled, encoding="utf-8")
        unfinished.replace(kept)
    except OSError:  # a home that cannot be written only costs the seconds
        pass
    return bundled
