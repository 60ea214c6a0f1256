"""Responses, their items and conversations in OpenAI's shape."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.types import TokenUsage
from chatapp.conversations.models import Conversation, Message
from chatapp.features.openai_api.turns import conversation_name
from chatapp.operations.database.access import parse_id
from chatapp.operations.errors import NotFound

INCOMPLETE_REASONS = {
    "length": "max_output_tokens",
    # OpenAI has no word for any other reason why an answer is incomplete.
    "bound": "max_output_tokens",
    "lost": "max_output_tokens",
    "unknown_reason": "max_output_tokens",
    "content_filter": "content_filter",
}


def named(prefix: str, row_id: UUID | str) -> str:
    """Return the id in OpenAI's form: `resp_…`, `msg_…`."""
    return f"{prefix}_{UUID(str(row_id)).hex}"


def row_id(prefix: str, name: str) -> UUID:
    """Return the row id in a name with this prefix. Raise NotFound."""
    if not name.startswith(f"{prefix}_"):
        raise NotFound()
    return parse_id(name.removeprefix(f"{prefix}_"))


def reasoning_name(answer_name: str, index: int) -> str:
    """Return the id of the reasoning at this index of a stored answer's output."""
    return f"rs_{answer_name.removeprefix('msg_')}_{index}"


def answer_id_of_reasoning(name: str) -> str:
    """Return the id of the answer that a reasoning id belongs to; any other id unchanged."""
    kind, _, place = name.partition("_")
    return f"msg_{place.partition('_')[0]}" if kind == "rs" else name


def new_name(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What is known of a response before it is written. `asked` contains request fields that it repeats."""

    id: str
    created_at: float
    model: str
    is_stored: bool
    conversation_id: str | None = None
    previous: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)


def response_shape(
    head: ResponseHead,
    status: str,
    *,
    output: Sequence[Mapping[str, Any]] = (),
    usage: TokenUsage | None = None,
    error: Mapping[str, Any] | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """Return the response object. `reason` says why an incomplete response ended."""
    return {
        "id": head.id,
        "object": "response",
        "created_at": head.created_at,
        "status": status,
        "background": False,
        "error": error,
        "incomplete_details": {"reason": INCOMPLETE_REASONS[reason]} if status == "incomplete" else None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": dict(head.metadata),
        "model": head.model,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": head.previous,
        "conversation": {"id": conversation_name(head.conversation_id)} if head.conversation_id else None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": head.is_stored,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": response_usage(usage) if usage else None,
        "user": None,
        **head.asked,
    }


def response_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        # The official client requires the field, but our counts do not separate reasoning.
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def message_output(name: str, text: str | None, status: str = "completed") -> dict[str, Any]:
    """Return an answer as an item; `text` None announces it."""
    content = [] if text is None else [text_part(text)]
    return {"id": name, "type": "message", "role": "assistant", "status": status, "content": content}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning_output(name: str, text: str | None, status: str = "completed") -> dict[str, Any]:
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"id": name, "type": "reasoning", "summary": [], "content": content, "status": status}


def call_output(
    name: str, call_id: str, function: str, arguments: str, status: str = "completed"
) -> dict[str, Any]:
    return {
        "id": name,
        "type": "function_call",
        "call_id": call_id,
        "name": function,
        "arguments": arguments,
        "status": status,
    }


def conversation_object(row: Conversation, metadata: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": conversation_name(row.pk),
        "object": "conversation",
        "created_at": int(row.created_at.timestamp()),
        "metadata": dict(metadata),
    }


STATUS = {Message.Status.STREAMING: "in_progress", Message.Status.COMPLETE: "completed"}


def message_item(row: Message) -> dict[str, Any]:
    """Return a stored message as an item of its conversation."""
    is_answer = row.role == Message.Role.ASSISTANT
    parts = [part for part in row.parts if part["type"] in ("text", "image")]
    content = [text_part(part["text"]) if is_answer else _input_part(part) for part in parts]
    return {
        "id": named("msg", row.pk),
        "type": "message",
        "role": row.role,
        "status": STATUS.get(Message.Status(row.status), "incomplete"),
        "content": content,
    }


def _input_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    return {"type": "input_image", "file_id": part["file_id"], "image_url": None, "detail": "auto"}


def list_object(items: Sequence[Mapping[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return a page of items. The ids of an empty page are empty."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": has_more,
    }


def seconds(moment: datetime) -> float:
    # OpenAI counts whole seconds, but its client declares a float.
    return float(int(moment.timestamp()))
