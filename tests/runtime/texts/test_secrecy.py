"""What a server says is shown without the key it was sent, in whichever form it repeats it."""

import base64
import html
import json
import random
import string
import time
from urllib.parse import quote

import pytest

from hopscope.runtime.texts.secrecy import HIDDEN, Secret, shown

KEY = "sk-very+Secret/0123'45&6789\\wxyz"
FORMS = {
    "plain": KEY,
    "another case": KEY.upper(),
    "percent": quote(KEY, safe=""),
    "html": html.escape(KEY),
    "json": json.dumps(KEY),
    "php's json": json.dumps(KEY).replace("/", "\\/"),
    "python": repr({"key": KEY}),
    "hex": KEY.encode().hex(),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "header": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "user": base64.b64encode(f"u:{KEY}\n".encode()).decode(),
    "url safe": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    "beginning": KEY[:20],
    "middle": KEY[7:19],
    "end": KEY[-9:],
    "elided": f"{KEY[:8]}********{KEY[-4:]}",
    "dots": f"{KEY[:3]}...{KEY[-3:]}",
    "last four": f"that ends in {KEY[-4:]}",
    "with marks": "\u200d".join(KEY),
    "colours": "\x1b[1m".join([KEY[:12], KEY[12:]]),
}


def parts(text: str) -> set[str]:
    """Each four characters that stand together in any form of the key."""
    return {text[at : at + 4].lower() for at in range(len(text) - 3)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", [0, 270, 290, 299])
def test_no_form_of_the_key_is_left_wherever_the_text_is_cut(form: str, before: int) -> None:
    told = "Y" * before + f" denied: {FORMS[form]} was sent"
    cleaned = shown(told, Secret(KEY))
    assert len(cleaned) <= 300
    assert not parts(KEY) & parts(cleaned)
    if not before:
        assert cleaned.startswith("denied:")
        assert cleaned.endswith("was sent")
        assert HIDDEN in cleaned


def test_of_an_encoded_key_only_what_stood_beside_it_is_left() -> None:
    left = {
        form: shown(FORMS[form], Secret(KEY)) for form in ("percent", "hex", "base64", "header")
    }
    # In base64, bits of the key's first and last character stand together with others.
    assert left == {
        "percent": HIDDEN,
        "hex": HIDDEN,
        "base64": HIDDEN + FORMS["base64"][42:],
        "header": FORMS["header"][:10] + HIDDEN,
    }


def test_an_ordinary_message_is_as_it_was() -> None:
    said = "This model's maximum context length is 131072 tokens... you requested 140000 tokens"
    letters = random.Random(0)
    for _ in range(50):
        key = "sk-" + "".join(letters.choices(string.ascii_letters + string.digits, k=48))
        assert shown(said, Secret(key)) == said
    assert shown(said, Secret("")) == said
    assert shown("abc EMPTY def", Secret("EMPTY")) == "abc *** def"
    assert shown("6a8f 3.5", Secret("a")) == "6***8f 3.5"


def test_text_of_a_server_cannot_steer_a_terminal() -> None:
    told = "a\x1b[31mb\x9bc\u202ed\ne\x00f\ud800"
    assert shown(told, Secret("")) == "a[31mbcd ef"


@pytest.mark.parametrize("shape", [KEY, "*", ".", "a ", "xxx ", KEY[:5], "\x1b", "İ"])
def test_megabytes_take_no_time(shape: str) -> None:
    begun = time.process_time()
    assert len(shown(shape * (3_000_000 // len(shape)), Secret(KEY))) <= 300
    assert time.process_time() - begun < 1
