"""Schemas of the API, for its description and as a check of its answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
)

from chatapp.conversations.schemas.messages import normalize_message_text
from chatapp.operations.http.schemas import Body, Moment, Shape
from memory.strategies.registry import StrategyName


class Compaction(Shape):
    id: str
    status: Literal["pending", "running", "done", "failed", "undone"]
    strategy: str
    summary: str
    message_count: int
    first_position: int
    last_position: int
    tokens_before: int
    tokens_after: int
    is_extract: bool = Field(description="No model wrote the summary: it is sentences of the conversation.")
    usage: dict[str, Any]
    created_at: Moment


class CompactionPreview(Shape):
    preview: Literal[True]
    strategy: str
    first_position: int
    last_position: int
    message_count: int
    kept_count: int
    tokens_before: int
    tokens_after: int = Field(description="Of the draft; a model's summary may differ.")
    summary: str = Field(description="A draft: the sentences that carry facts. No model wrote it.")


class CompactRequest(Body):
    keep: Annotated[str, AfterValidator(normalize_message_text), Field(max_length=10_000)] | None = Field(
        None, description="What the summary should keep, in the user's words."
    )
    strategy: StrategyName | None = None
    wait: bool = Field(False, description="Answer when the summary is done.")
    preview: bool = Field(
        False, description="Only tell what would be summarised; calls no model, writes nothing."
    )


class SummaryChange(Body):
    summary: Annotated[str, AfterValidator(normalize_message_text), Field(min_length=1, max_length=100_000)]
