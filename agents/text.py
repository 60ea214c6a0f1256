"""Make text storable in every database, read JSON in it, and find characters that people cannot see."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""Invisible characters that are neither control nor format characters: fillers, variation selectors (of the property
Default_Ignorable_Code_Point), the empty Braille pattern."""

_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_EMOJI = f"[{_PICTURES}]\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_JOINED = re.compile(
    f"{_EMOJI}(?:\u200d{_EMOJI})*|[0-9#*]\ufe0f\u20e3"
    "|(?<=[\u0600-\u06ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u06ff\u0900-\u0dff])"
)
"""Sequences that are visible as a whole: emoji, and joiners between letters of Arabic and Indic scripts."""


def read_json(text: str | bytes) -> Any:
    """Return the JSON value; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # nested too deep
        return None


def storable_text(text: str) -> str:
    """Return the text with surrogate pairs joined, and NUL and lone surrogates replaced by U+FFFD."""
    if not UNSTORABLE.search(text):
        return text
    # In UTF-16, the two halves of a pair decode to one character.
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return paired.replace("\x00", "\ufffd")


def is_storable(value: Any) -> bool:
    """Return whether every database can store the value as JSON: no NUL, lone surrogate, infinity or NaN."""
    if isinstance(value, str):
        return not UNSTORABLE.search(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_storable(name) and is_storable(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_storable(inner) for inner in value)


def visible_line(text: str) -> str:
    """Return the text on one line, without characters that a model reads but a person does not see."""
    return " ".join("".join(" " if _is_unseen(char) else char for char in text).split())


def is_visible(value: Any) -> bool:
    """Return whether a person sees every character of the value, including its keys, when it is shown as JSON."""
    if isinstance(value, str):
        shown = _JOINED.sub("", value)
        return not any(_is_unseen(char) for char in shown if char not in "\n\r\t")
    if isinstance(value, dict):
        return all(is_visible(name) and is_visible(inner) for name, inner in value.items())
    return not isinstance(value, list) or all(is_visible(inner) for inner in value)


def _is_unseen(char: str) -> bool:
    """Return whether a character is invisible. Format characters count, because some reverse the text."""
    return unicodedata.category(char)[0] == "C" or bool(_BLANK.match(char))
