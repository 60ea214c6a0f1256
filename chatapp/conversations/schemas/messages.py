"""Messages in the API: schemas of requests and responses, and responses built from rows.

An answer includes what its run did, so the shapes of a run's plan, error and tool calls are here, too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from ninja import Schema
from pydantic import AfterValidator, Discriminator, Field, RootModel, Tag, model_validator

from agents.plan.steps import OVER, PREVIEW_CHARS
from chatapp.conversations import models
from chatapp.conversations.schemas.conversations import Mode
from chatapp.operations.clock import iso_time
from chatapp.operations.database.text import normalize_text
from chatapp.operations.http.schemas import Body, Key, Moment, Name, Page, Shape
from chatapp.runs.models import Run, ToolCall
from memory.bounds import MAX_ATTACHMENTS, MAX_CHARS, MAX_PARTS, Id

# --- Requests -------------------------------------------------------------------------------------------


def normalize_message_text(text: str) -> str:
    """Return the normalised text to store. Raise TooLarge."""
    return normalize_text(text, settings.MAX_MESSAGE_CHARS, "The message")


MessageText = Annotated[
    str,
    AfterValidator(normalize_message_text),
    Field(json_schema_extra={"maxLength": settings.MAX_MESSAGE_CHARS}),
]


class TextIn(Body):
    type: Literal["text"]
    text: MessageText


class ImageIn(Body):
    """An uploaded file by its id, or the image itself as a data URL."""

    type: Literal["image"]
    file_id: Id | None = None
    data_url: str | None = Field(None, max_length=MAX_CHARS, description="data:image/png;base64,…")
    name: Name = "image"

    @model_validator(mode="after")
    def _one_source(self) -> ImageIn:
        if (self.file_id is None) == (self.data_url is None):
            raise ValueError("give either file_id or data_url")
        return self

    def decoded(self) -> bytes:
        """Return the bytes of the data URL. Raise ValueError."""
        head, comma, body = (self.data_url or "").partition(",")
        if not head.startswith("data:image/") or not head.endswith(";base64") or not comma:
            raise ValueError("data_url must begin with data:image/…;base64,")
        try:
            # Without `validate`, b64decode would skip characters that are not base64.
            return base64.b64decode(body, validate=True)
        except binascii.Error:
            raise ValueError("data_url is not valid base64") from None


PartIn = Annotated[TextIn | ImageIn, Field(discriminator="type")]


# Without a discriminator, pydantic reports the errors of all members of a union.
def _content_kind(value: Any) -> str:
    return "parts" if isinstance(value, list) else "text"


ContentIn = Annotated[
    Annotated[MessageText, Tag("text")] | Annotated[list[PartIn], Field(max_length=MAX_PARTS), Tag("parts")],
    Discriminator(_content_kind),
]


class StreamOption(Body):
    """With `stream`, the answer comes as server-sent events; else as one JSON response when it is complete."""

    stream: bool = False


class RunOptions(StreamOption):
    model: Id | None = None
    mode: Mode | None = Field(None, description="How this is answered; the conversation's mode by default.")


class InjectedMessage(Body):
    """A message to add to the answer that is being written, whose model is already chosen."""

    content: ContentIn
    attachments: list[Id] = Field(default_factory=list, max_length=MAX_ATTACHMENTS)
    client_id: Key | None = Field(None, description="Idempotency: the same key never sends twice.")


class SentMessage(InjectedMessage, RunOptions):
    """A message, and options for its answer."""


class NewMessageIn(SentMessage):
    parent: Id | None = Field(None, description="The message to continue after; the last one by default.")


class PinIn(Body):
    pinned: bool = Field(description="Whether it stays in context however long the conversation becomes.")


def _is_pin(body: Any) -> str:
    return "pin" if isinstance(body, dict) and "pinned" in body and "content" not in body else "edit"


class MessageChange(RootModel[Any]):
    """New content, or only a change of the pin."""

    root: Annotated[
        Annotated[PinIn, Tag("pin")] | Annotated[SentMessage, Tag("edit")], Discriminator(_is_pin)
    ]


MAX_CURSOR_CHARS = 100


class PageAsked(Schema):
    before: str | None = Field(
        None, max_length=MAX_CURSOR_CHARS, description="A position or a message id: only older messages."
    )
    after: str | None = Field(
        None, max_length=MAX_CURSOR_CHARS, description="A position or a message id: only newer messages."
    )
    around: str | None = Field(
        None,
        max_length=MAX_CURSOR_CHARS,
        description="A message id: messages around it; 409 while the conversation shows another branch.",
    )
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    @model_validator(mode="after")
    def _one_cursor(self) -> Self:
        if sum(bool(cursor) for cursor in (self.before, self.after, self.around)) > 1:
            raise ValueError("Ask for one of before, after and around.")
        return self


# --- Responses ------------------------------------------------------------------------------------------


class RunUsage(Shape):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    compaction_tokens: int = 0
    cost: float | None = None


def _if_any(description: str) -> Any:
    """Return a field that is omitted if it is None."""
    return Field(None, description=description, exclude_if=lambda value: value is None)


class Message(Shape):
    id: str
    conversation_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str | list[dict[str, Any]] = Field(
        description="A string if it is plain text, otherwise a list of parts."
    )
    status: Literal["streaming", "complete", "cut", "stopped", "failed", "interrupted"] = Field(
        description="`cut`: it is incomplete, and `error.category` says why: length, content_filter, bound, lost or "
        "unknown_reason."
    )
    position: int
    parent: str | None = Field(
        description="The answer that a tool call, its result or an injected message belongs to."
    )
    kind: Literal["message", "injected", "edited"] = Field(
        description="Injected: sent while an answer was written. Edited: an answer in its user's own words."
    )
    siblings: list[str] | None = Field(
        None,
        description="Ids of this message and its alternatives (edits or new answers), oldest first.",
    )
    pinned: bool
    forgotten: bool = Field(description="Whether its text, or part of it, was forgotten.")
    model: str | None
    usage: RunUsage | None
    created_at: Moment
    error: dict[str, str] | None = _if_any("For an incomplete answer: `{category, message}`, as in its run.")
    run: dict[str, Any] | None = _if_any(
        "For an answer: `{id, status, error, mode, plan}`, as in `/runs/{id}`."
    )
    tools: list[dict[str, Any]] | None = _if_any(
        "For an answer: the calls of its run, also those of hooks, each as in the run's trace."
    )
    recalled: list[dict[str, Any]] | None = _if_any(
        "For an answer: what was recalled for it, as in the event `recall`."
    )
    notices: list[dict[str, str | int]] | None = _if_any(
        "For an answer: notices sent while it was written, `{seq, kind, text}`, `seq` as in the event; `hook`: what a"
        " hook did."
    )
    remembered: list[dict[str, str]] | None = _if_any(
        "Memory entries learned up to this message: `{entry_id, day, preview}`."
    )


class MessagePage(Page[Message]):
    newer_cursor: str | None


def message_shape(row: models.Message, run: Run | None = None) -> dict[str, Any]:
    """Return the row as the API, events and exports show it. `run` is the run that wrote the message, if any."""
    shape: dict[str, Any] = {
        "id": str(row.id),
        "conversation_id": str(row.conversation_id),
        "role": row.role,
        "content": content_of(row.parts),
        "status": row.status,
        "position": row.position,
        "parent": str(row.parent_id) if row.parent_id else None,
        "pinned": row.pinned,
        "forgotten": row.forgotten_at is not None,
        "kind": row.kind,
        "model": row.model_name or None,
        "usage": row.usage,
        "created_at": iso_time(row.created_at),
    }
    if run is not None:
        error = run_error(run)
        if error is not None:
            shape["error"] = {"category": error["category"], "message": error["message"]}
        shape["run"] = {
            "id": str(run.id),
            "status": run.status,
            "error": error,
            "mode": run.mode or None,
            "plan": plan_shape(run),
        }
    return shape


def content_of(parts: Sequence[Mapping[str, Any]]) -> str | list[Mapping[str, Any]]:
    """Return the text if the message is plain text, else the parts."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


def run_error(run: Run) -> dict[str, str] | None:
    """Return why the run failed; None if it did not."""
    if not run.error_message:
        return None
    return {"category": run.error_category, "message": run.error_message, "detail": run.error_detail}


def plan_shape(run: Run) -> list[dict[str, Any]] | None:
    """Return the steps of the run's plan, each with the beginning of its result; None if it has no plan.

    When the run has ended, steps that were not finished are shown as skipped.
    """
    if not run.plan:
        return None
    shape = [
        step | {"task": step["task"][:PREVIEW_CHARS], "result": step["result"][:PREVIEW_CHARS]}
        for step in run.plan
    ]
    if run.status in Run.ACTIVE:
        return shape
    return [step if step["state"] in OVER else step | {"state": "skipped"} for step in shape]


SHOWN_ARGUMENTS_CHARS = 4_000
RESULT_PREVIEW_CHARS = 500


def tool_call_shape(call: ToolCall) -> dict[str, Any]:
    """Return the call with the beginning of its arguments and result; its messages contain both in full."""
    result: Mapping[str, Any] = next(iter(call.result), {})
    arguments = call.arguments
    # A user who is asked to approve a call has to see all of it.
    if call.state != ToolCall.State.WAITING:
        arguments = arguments[:SHOWN_ARGUMENTS_CHARS]
    return {
        "call_id": call.call_id,
        "name": call.name,
        "state": call.state,
        "step": call.step,
        "plan_step": call.plan_step or None,
        "hook_id": call.hook_id or None,
        "arguments": arguments,
        "arguments_cut": len(arguments) < len(call.arguments),
        "preview": result.get("text", "")[:RESULT_PREVIEW_CHARS],
        "truncated": call.is_cut,
        "offload_ref": result.get("offload_ref"),
        "requested_at": iso_time(call.requested_at),
        "started_at": iso_time(call.started_at),
        "finished_at": iso_time(call.finished_at),
        "duration_ms": _milliseconds(call.started_at, call.finished_at),
    }


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return round((end - start).total_seconds() * 1000) if start and end else None
