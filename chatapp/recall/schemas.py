"""Request and response schemas of the search API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Moment, Shape
from chatapp.recall.analysis import analyzer
from chatapp.recall.selectors.claims import Superseded
from chatapp.recall.selectors.found_texts import source_of
from chatapp.recall.user_search import MarkedResult
from memory.bounds import MAX_ID_CHARS, MAX_QUERY_CHARS, Id, PageSize
from memory.recall.excerpts import excerpt_of


class SearchQuery(Schema):
    q: Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
    limit: PageSize = 20
    after: str | None = Field(
        None, max_length=MAX_ID_CHARS, description="A day or a time (ISO 8601): only texts from then on."
    )
    before: str | None = Field(
        None, max_length=MAX_ID_CHARS, description="A day or a time: only texts before it."
    )
    as_of: str | None = Field(
        None,
        max_length=MAX_ID_CHARS,
        description="A day or a time: search only what was known at its end.",
    )
    conversation_id: Id | None = Field(None, description="Only texts of this conversation.")
    folder: Id | None = Field(None, description="The id of a folder: only texts of its conversations.")
    agent: Id | None = Field(
        None, description="The name or id of an agent, or `default`: only texts of conversations with it."
    )
    role: Literal["user", "assistant"] | None = Field(None, description="Who said it.")


class Source(Shape):
    kind: str
    conversation_id: str | None = None
    message_id: str | None = None
    day: str | None = None


class ExcerptSpan(Shape):
    text: str
    is_hit: bool


class Result(Shape):
    text: str
    excerpt: list[ExcerptSpan] = Field(
        description="The sentence with the most words of `q`, split into spans; matching words have `is_hit`."
    )
    title: str | None = Field(description="The title of the conversation.")
    source: Source
    score: float
    created_at: Moment
    valid_until: Moment | None = Field(None, description="When a newer statement replaced it.")
    superseded_by: dict[str, Any] | None = None


def shown_shape(result: MarkedResult, query: str, titles: Mapping[UUID, str]) -> dict[str, Any]:
    """Return the result in the format of the API."""
    found = result.found
    return {
        **result_shape(result),
        "excerpt": [asdict(span) for span in excerpt_of(found.text, query, analyzer)],
        "title": titles.get(found.conversation_id) if found.conversation_id else None,
    }


def result_shape(result: MarkedResult) -> dict[str, Any]:
    """Return the result for programs: its text, its source, and the statement that replaced it."""
    found, newer = result.found, result.superseded
    return {
        "text": found.text,
        "source": source_of(found),
        "score": round(found.score, 6),
        "created_at": iso_time(found.said_at),
        "role": found.role or None,
        "valid_until": iso_time(newer.until) if newer else None,
        "superseded_by": _newer_shape(newer) if newer else None,
    }


def _newer_shape(newer: Superseded) -> dict[str, Any]:
    return {
        "text": newer.text,
        "message_id": str(newer.message_id) if newer.message_id else None,
        "entry_id": str(newer.entry_id) if newer.entry_id else None,
        "created_at": iso_time(newer.until),
    }
