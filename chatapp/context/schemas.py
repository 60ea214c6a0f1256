"""API schemas, for its description and for validating its responses."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from chatapp.context.models import SentRequest
from chatapp.conversations.schemas.messages import MessageText
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Shape
from memory.bounds import MAX_TOKENS, Id


class InspectedMessage(Shape):
    role: str
    content: Any
    source: Any
    tokens: int


class Inspection(Shape):
    messages: list[InspectedMessage]
    total_tokens: int
    budget_tokens: int
    limit_tokens: int = Field(
        description="Most tokens of the whole request. The budget excludes the part of the system prompt and the tools "
        "that fits into the model's reserve."
    )
    pressure: float
    compaction: Any
    recalled: list[Any]


class ContextQuestion(Body):
    query: MessageText = ""
    budget_tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_TOKENS,
        description="For all messages together, without tool schemas, which use the model's reserve.",
    )
    model: Id | None = None


def request_shape(row: SentRequest) -> dict[str, Any]:
    return {
        "n": row.n,
        "purpose": row.purpose,
        "model": row.model_name,
        "sha256": row.sha256,
        "tokens": row.tokens,
        "created_at": iso_time(row.created_at),
    }
