"""Takes out of a server's refusal what it repeats of the request: the words of one client are no rule for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.types import ModelRequest

LEAST_CHARS = 8
"""Shorter texts may be in what any server says."""


def without_own_words(words: str, request: ModelRequest) -> str:
    """Return the refusal without the values of options, the texts of messages, and what names and describes tools."""
    own = {text for text in _texts(request) if len(text) <= len(words) and text in words}
    # The longest first: one may be a part of another.
    for text in sorted(own, key=len, reverse=True):
        words = words.replace(text, " ")
    return words


def _texts(request: ModelRequest) -> Iterator[str]:
    for tool in request.tools:
        # In quotes alone: a tool may be called "support", which is a word of servers, too.
        yield from (f"{quote}{tool.name}{quote}" for quote in "'\"`")
        yield from _long([tool.name, tool.description, tool.parameters])
    yield from _long([*request.options.values(), *(message.text for message in request.messages)])


def _long(value: Any) -> Iterator[str]:
    """Yield the texts among values, however deep, that are no single words: those may be the server's own."""
    match value:
        case str():
            if len(value) >= LEAST_CHARS and not value.isalpha():
                yield value
        case dict():
            for inner in value.values():
                yield from _long(inner)
        case list() | tuple():
            for inner in value:
                yield from _long(inner)
