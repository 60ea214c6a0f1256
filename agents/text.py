"""What others say, as every database stores it and every request carries it."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""What shows nothing and is neither a control nor a format character: fillers, variation selectors (of the property
Default_Ignorable_Code_Point), empty patterns."""

_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_EMOJI = f"[{_PICTURES}]\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_JOINED = re.compile(
    f"{_EMOJI}(?:\u200d{_EMOJI})*|[0-9#*]\ufe0f\u20e3"
    "|(?<=[\u0600-\u06ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u06ff\u0900-\u0dff])"
)
"""Emoji with what makes them one, and what joins or parts letters of Arabic and Indic scripts: people see it."""


def storable_text(text: str) -> str:
    """What no user typed, such as a model's words: NUL and lone surrogates become U+FFFD, halves that meet a pair."""
    if not UNSTORABLE.search(text):
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\x00", "\ufffd")


def is_storable(value: Any) -> bool:
    """Whether every database takes it as JSON: without NUL, lone surrogates, infinite numbers and what is no number."""
    if isinstance(value, str):
        return not UNSTORABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_storable(name) and is_storable(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_storable(inner) for inner in value)


def visible_line(text: str) -> str:
    """On one line, without what a model reads and a person does not see."""
    return " ".join("".join(" " if _is_unseen(sign) else sign for sign in text).split())


def is_visible(value: Any) -> bool:
    """Whether a person who is shown this, as JSON, sees all of it: names and values."""
    if isinstance(value, str):
        shown = _JOINED.sub("", value)
        return not any(_is_unseen(sign) for sign in shown if sign not in "\n\r\t")
    if isinstance(value, dict):
        return all(is_visible(name) and is_visible(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_visible(inner) for inner in value)


def _is_unseen(sign: str) -> bool:
    """Controls, format and unassigned characters too: some turn others round."""
    return unicodedata.category(sign)[0] == "C" or bool(_BLANK.match(sign))
