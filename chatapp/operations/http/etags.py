"""The header `If-Match`, which turns a change of an old version into a conflict."""

from __future__ import annotations

from typing import Annotated

from ninja import Header

IfMatch = Annotated[str | None, Header(None, alias="If-Match", max_length=200)]


def version_of(if_match: str | None) -> str | None:
    """Return the version between the quotes; None where any version is accepted."""
    return None if if_match is None or if_match == "*" else if_match.removeprefix("W/").strip('"')
