"""Remove from a refusal what it repeats of the request, so that one client's words do not become a rule for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.types import ModelRequest

LEAST_CHARS = 8
"""Shorter texts may occur in any server's own words."""


def strip_echoed_request(words: str, request: ModelRequest) -> str:
    """Return the refusal without values of options, texts of messages, and names and descriptions of tools."""
    own = {text for text in _texts(request) if len(text) <= len(words) and text in words}
    # Replace the longest first, because one may be part of another.
    for text in sorted(own, key=len, reverse=True):
        words = words.replace(text, " ")
    return words


def _texts(request: ModelRequest) -> Iterator[str]:
    for tool in request.tools:
        # Only in quotes: a tool may be called "support", which servers say, too.
        yield from (f"{quote}{tool.name}{quote}" for quote in "'\"`")
        yield from _long([tool.name, tool.description, tool.parameters])
    yield from _long([*request.options.values(), *(message.text for message in request.messages)])


def _long(value: Any) -> Iterator[str]:
    """Yield the texts among values, at any depth, except single words, which may be the server's own."""
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
