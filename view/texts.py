"""Stored text made safe to look at: questions, passages and replies come from anywhere.

Jinja2 escapes markup. What else a page obeys are control characters and marks of direction; they
are shown by their code points. Text longer than `LONGEST` is cut with a note.
"""

import json
import re
from typing import Any

LONGEST = 20_000
"""Characters of a text on a page."""
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters and marks of direction; line feeds and tabs are left."""
UNSAFE = re.compile("[<>&\u2028\u2029]")
"""Characters that end a script, or a line of one."""


def visible(text: str | None, longest: int = LONGEST) -> str:
    """The text with its control characters and marks of direction shown as [U+202E]."""
    given = text or ""
    cut = given if len(given) <= longest else given[:longest]
    shown = OBEYED.sub(lambda found: f"[U+{ord(found[0]):04X}]", cut)
    if cut is given:
        return shown
    return f"{shown}… [cut: {longest:,} of {len(given):,} characters are shown]"


def script_json(value: Any) -> str:
    """JSON that may stand in a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
