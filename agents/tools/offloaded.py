"""Tools to read what was too large for the context, by its reference: by page, by pattern, as an image."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import regex
from pydantic import Field

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.protocol import (
    ResultLimit,
    Right,
    ToolCaller,
    ToolFailure,
    ToolImage,
    ToolOutput,
    ToolTraits,
)
from agents.tools.tool_results import fits
from agents.types import ToolSpec
from memory.tokens import estimate_text

PAGE_CHARS = 8_000
MAX_PAGE_CHARS = 20_000
MATCH_TIMEOUT_S = 2.0
MAX_MATCHES = 50
AROUND_CHARS = 200
"""Shown before and after a match, because a line may be the whole file."""
MAX_PATTERN_SIZE = 50_000
"""Limit for characters, classes and groups, each counted as often as it is repeated."""
MAX_COUNT_DIGITS = 6
_PATTERN_TOKEN = re.compile(r"\(\?#[^)]*\)|\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)
# Searched in the raw pattern, so that no set or comment can hide anything: `regex` reads these sequences in no other
# way, even in verbose mode, except after a backslash. A set that contains them is refused, too.
_UNBOUNDED = re.compile(
    r"(?<!\\)(?:\\\\)*\(\?(?:[R&0-9]|[+-](?![A-Za-z])|P(?![<=])|(?P<verbose>[A-Za-z0-9]*x))"
)
"""Calls of groups, each of which takes a level of `regex`'s own stack; and verbose mode, which can hide counts."""

_RIGHTS: frozenset[Right] = frozenset({"conversation"})
CONTEXT_REFERENCE = "context"
LIST_REFERENCE = "list"
_REFERENCE = Field(
    min_length=1,
    max_length=100,
    description=f"As the shortened result names it; {CONTEXT_REFERENCE!r}: the messages that left the context;"
    f" {LIST_REFERENCE!r}: all references there are.",
)
_IMAGE_REFERENCE = Field(min_length=1, max_length=100, description="As the result names it.")


class OffloadPort(Protocol):
    """Reads offloads of the caller's conversation. Both methods raise ToolFailure for an unknown reference."""

    async def read_text(self, caller: ToolCaller, reference: str) -> str: ...

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage: ...


class PageArguments(Arguments):
    reference: str = _REFERENCE
    offset: int = Field(0, ge=0, description="First character.")
    limit: int = Field(PAGE_CHARS, ge=1, le=MAX_PAGE_CHARS, description="Characters at most.")


class GrepArguments(Arguments):
    reference: str = _REFERENCE
    pattern: str = Field(
        min_length=1, max_length=500, description="A regular expression; upper and lower case are one."
    )


class ImageArguments(Arguments):
    reference: str = _IMAGE_REFERENCE


@dataclass(frozen=True, slots=True)
class OffloadPage:
    port: OffloadPort

    spec: ClassVar = ToolSpec(
        "offloaded_page",
        "Reads a part of an offloaded result that was too large to be shown whole.",
        schema_of(PageArguments),
    )
    traits: ClassVar = ToolTraits(rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(PageArguments, arguments)
        text = await self.port.read_text(caller, wanted.reference)
        if wanted.offset >= len(text):
            raise ToolFailure(f"There is nothing from {wanted.offset:,} on: it has {len(text):,} characters.")
        return ToolOutput(_write_page(text, wanted.offset, wanted.limit, caller.limit))


@dataclass(frozen=True, slots=True)
class OffloadGrep:
    port: OffloadPort

    spec: ClassVar = ToolSpec(
        "offloaded_grep",
        "Searches an offloaded result with a regular expression and shows each match with its surroundings and offset.",
        schema_of(GrepArguments),
    )
    traits: ClassVar = ToolTraits(rights=_RIGHTS)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        wanted = read_arguments(GrepArguments, arguments)
        text = await self.port.read_text(caller, wanted.reference)
        return ToolOutput(await asyncio.to_thread(find_matches, text, wanted.pattern, caller.limit))


@dataclass(frozen=True, slots=True)
class OffloadViewImage:
    port: OffloadPort

    spec: ClassVar = ToolSpec("offloaded_view_image", "Shows an offloaded image.", schema_of(ImageArguments))
    traits: ClassVar = ToolTraits(rights=_RIGHTS, shows_images=True)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        reference = read_arguments(ImageArguments, arguments).reference
        image = await self.port.read_image(caller, reference)
        return ToolOutput(f"The image {reference}.", images=(image,))


def _write_page(text: str, offset: int, chars: int, limit: ResultLimit | None) -> str:
    """Return no more than the model will see, so that the next page starts where the model stopped reading."""
    end = min(offset + chars, len(text))
    rest = "This is the end." if end == len(text) else f"Go on with offset {end}."
    page = f"Characters {offset:,} to {end:,} of {len(text):,}. {rest}\n\n{text[offset:end]}"
    if limit is None or fits(page, limit) or chars == 1:
        return page
    share = min(limit.tokens / estimate_text(page), limit.chars / len(page), 1.0)
    return _write_page(text, offset, max(1, int((end - offset) * share * 0.95)), limit)


def find_matches(text: str, pattern: str, limit: ResultLimit | None = None) -> str:
    """Return as many matches as the model will see, in bounded time for any pattern. Raise ToolFailure."""
    _check_size(pattern)
    try:
        compiled = regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
        matches = list(_first_matches(compiled, text))
    except regex.error as error:
        raise ToolFailure(f"The pattern is not a valid regular expression: {error}.") from None
    except (TimeoutError, RecursionError, OverflowError, MemoryError):
        raise ToolFailure("The pattern takes too long here; use a simpler one.") from None
    if not matches:
        return f"Nothing matches {pattern!r} in {len(text):,} characters."
    found = [_surroundings(text, *span) for span in matches[:MAX_MATCHES]]
    count = len(found)
    while count > 1 and limit is not None and not fits(_write_matches(found[:count], len(matches)), limit):
        count = count * 2 // 3
    return _write_matches(found[:count], len(matches))


def _check_size(pattern: str) -> None:
    """Raise ToolFailure for recursion, whose memory grows with the text, and for nested counts that are too large: the
    compiled pattern takes memory for their product."""
    if unbounded := _UNBOUNDED.search(pattern):
        what = "be in verbose mode" if unbounded["verbose"] else "call groups, as (?R) and (?1) do"
        raise ToolFailure(f"The pattern must not {what}; write it out.")
    sizes, last = [0], 0
    for token in _PATTERN_TOKEN.finditer(pattern):
        if token[0].startswith("(?#"):
            continue
        if token[0] == "(":
            sizes.append(0)
        elif token[0] == ")":
            last = sizes.pop()
            sizes = sizes or [0]
            sizes[-1] += last
        elif token[1]:
            most = max(int(number[:MAX_COUNT_DIGITS]) for number in token.group(1, 2) if number)
            sizes[-1] += last * (most - 1)
            last *= most
        else:
            last = 1
            sizes[-1] += 1
        if sizes[-1] > MAX_PATTERN_SIZE:
            raise ToolFailure("The pattern repeats too much; use smaller counts.")


def _write_matches(shown: Sequence[str], count: int) -> str:
    more = "; there are more, narrow the pattern" if count > len(shown) else ""
    return "\n".join([f"{len(shown)} matches{more}.", *shown])


def _first_matches(compiled: Any, text: str) -> Iterator[tuple[int, int]]:
    """Yield one match more than is shown, without those in the context of the previous match."""
    shown_to = -1
    found = 0
    # Unlike `re`, `regex` has a timeout and lets other threads run.
    for match in compiled.finditer(text, concurrent=True, timeout=MATCH_TIMEOUT_S):
        # Skip empty matches, which could be everywhere.
        if match.start() < shown_to or match.start() == match.end():
            continue
        yield match.span()
        found += 1
        shown_to = match.end() + AROUND_CHARS
        if found > MAX_MATCHES:
            return


def _surroundings(text: str, start: int, end: int) -> str:
    first, last = max(0, start - AROUND_CHARS), min(len(text), end + AROUND_CHARS)
    shown = text[first:last] if last - first <= MAX_PAGE_CHARS else text[first : first + MAX_PAGE_CHARS]
    return f"--- at offset {start:,}\n{shown}"
