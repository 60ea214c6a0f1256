"""The headers `If-Match`, which turns a change of an old version into a conflict, and `If-None-Match`."""

from __future__ import annotations

from typing import Annotated

from ninja import Header

IfMatch = Annotated[str | None, Header(None, alias="If-Match", max_length=200)]
IfNoneMatch = Annotated[str, Header("", alias="If-None-Match", max_length=1_000)]


def version_of(if_match: str | None) -> str | None:
    """Return the version between the quotes; None where any version is accepted."""
    return None if if_match is None or if_match == "*" else if_match.removeprefix("W/").strip('"')
