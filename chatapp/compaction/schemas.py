"""Compactions in the API: schemas, and the response built from a row."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from chatapp.compaction.models import Compaction as CompactionRow
from chatapp.conversations.schemas.messages import normalize_message_text
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Moment, Shape
from memory.bounds import MAX_KEPT_MESSAGES, MAX_SUMMARY_TOKENS, MIN_SUMMARY_TOKENS
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
    keep_recent: int | None = Field(
        None,
        ge=0,
        le=MAX_KEPT_MESSAGES,
        description="Number of newest messages that stay, for this compaction only.",
    )
    summary_max_tokens: int | None = Field(
        None,
        ge=MIN_SUMMARY_TOKENS,
        le=MAX_SUMMARY_TOKENS,
        description="Most tokens of the summary, for this compaction only; at most the conversation's own limit.",
    )
    wait: bool = Field(False, description="Respond only when the summary is done.")
    preview: bool = Field(
        False, description="Only return what would be summarised; calls no model, writes nothing."
    )


class SummaryChange(Body):
    summary: Annotated[str, AfterValidator(normalize_message_text), Field(min_length=1, max_length=100_000)]


def compaction_shape(row: CompactionRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "conversation_id": str(row.conversation_id),
        "status": row.status,
        "strategy": row.strategy,
        "summary": row.summary,
        "reminder": row.reminder or None,
        "message_count": row.message_count,
        "kept_count": row.kept_count,
        "first_position": row.first_position,
        "last_position": row.last_position,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "is_extract": bool(row.fallback_reason),
        "fallback_reason": row.fallback_reason or None,
        "error": row.error or None,
        "usage": row.usage or {},
        "created_at": iso_time(row.created_at),
        "finished_at": iso_time(row.finished_at),
    }
