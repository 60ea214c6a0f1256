"""Cut a tool's result to what the model may see: head and tail, or the first items of a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.text import read_json
from agents.tools.protocol import ResultLimit
from memory.tokens import estimate_text

ADVICE = "Narrow the call where you can, and do not guess what is not shown."
NO_STORE = "There is no place to keep it; ask for less."
HEAD_SHARE = 2 / 3
NOTE = "\n\n[Showing "
Path = tuple[str, ...]
"""The keys that lead to a value inside nested objects."""
READING_TOOLS = "offloaded"
"""Prefix of the names of tools that read stored results."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`shown` describes the excerpt, e.g. "200 of 5,000 items, the first ones"."""

    text: str
    shown: str


def excerpt_of(text: str, limit: ResultLimit) -> Excerpt | None:
    """Return an excerpt of a text over the limit; None if the whole text fits."""
    if fits(text, limit):
        return None
    return _first_items(text, limit) or _head_and_tail(text, limit)


def fits(text: str, limit: ResultLimit) -> bool:
    # A text has at least one token per eight characters, so longer texts need not be counted.
    return len(text) <= min(limit.chars, 8 * limit.tokens) and estimate_text(text) <= limit.tokens


def write_excerpt(excerpt: Excerpt, reference: str, tools: Sequence[str]) -> str:
    """Return the excerpt with a note about where the rest is. `tools` are the names of all tools of the loop."""
    readers = [name for name in tools if name.startswith(READING_TOOLS)]
    reading = f" Read on or search in it with {', '.join(readers)}." if readers else ""
    return (
        f"{excerpt.text}{NOTE}{excerpt.shown}. The whole result is stored as {reference}.{reading} {ADVICE}]"
    )


def excerpt_alone(text: str) -> str:
    """Return the excerpt without the note of `write_excerpt`: a truncated note would name an invalid reference."""
    return text.rpartition(NOTE)[0] or text


def write_unkept(excerpt: Excerpt, *, is_done: bool, may_repeat: bool) -> str:
    """Return the text for the model if a result is not stored. If it may, the model should call again for less."""
    if is_done and may_repeat:
        return f"The result is too large: it would show {excerpt.shown}. {NO_STORE} {ADVICE}"
    note = " The call was done: do not repeat it." if is_done else ""
    return f"{excerpt.text}\n\n[Showing {excerpt.shown}. The rest could not be kept.{note}]"


def _first_items(text: str, limit: ResultLimit) -> Excerpt | None:
    """Return the first items of a JSON array, or of the longest array in an object; None if not even one fits."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    value = read_json(text)
    path = _longest_array(value)
    items = _item_at(value, path)
    if not isinstance(items, list):
        return None

    def written(count: int) -> str:
        return json.dumps(_with_item(value, path, items[:count]), ensure_ascii=False)

    # Each item takes at least one character.
    low, high = 0, min(len(items), limit.chars)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(written(middle), limit) else (low, middle - 1)
    if low == 0:
        return None
    place = f' in "{".".join(path)}"' if path else ""
    return Excerpt(written(low), f"{low:,} of {len(items):,} items{place}, the first ones")


def _longest_array(value: Any) -> Path:
    """Return the path of the array that takes the most characters, in the object or in one of its objects."""
    if not isinstance(value, dict):
        return ()
    outer: dict[Path, Any] = {(name,): item for name, item in value.items()}
    inner = {
        (*path, name): item
        for path, objects in outer.items()
        if isinstance(objects, dict)
        for name, item in objects.items()
    }
    arrays = {path: item for path, item in (outer | inner).items() if isinstance(item, list)}
    return max(arrays, key=lambda path: len(json.dumps(arrays[path], ensure_ascii=False)), default=())


def _item_at(value: Any, path: Path) -> Any:
    return _item_at(value[path[0]], path[1:]) if path else value


def _with_item(value: Any, path: Path, item: Any) -> Any:
    return value | {path[0]: _with_item(value[path[0]], path[1:], item)} if path else item


def _head_and_tail(text: str, limit: ResultLimit) -> Excerpt:
    chars = min(len(text), limit.chars, 8 * limit.tokens)
    while chars > 0:
        head = int(chars * HEAD_SHARE)
        tail = chars - head
        gap = f"\n[… {len(text) - chars:,} characters left out …]\n"
        shown = text[:head] + gap + text[len(text) - tail :]
        tokens = estimate_text(shown)
        if tokens <= limit.tokens:
            break
        # Always decrease, so that the loop ends.
        chars = min(chars - 1, int(chars * limit.tokens / tokens * 0.95))
    said = f"{head:,} characters of its beginning and {tail:,} of its end, of {len(text):,} characters"
    return Excerpt(shown, said)
