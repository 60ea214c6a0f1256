"""The immutable values that make up a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["message", "question", "injected", "summary", "reminder", "recall", "profile", "quoted"]


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A reference to a stored image. `data_url` is set only for a model call that shows it."""

    file_id: str
    mime_type: str
    width: int = 0
    height: int = 0
    data_url: str | None = None
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """`arguments` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    call_id: str
    name: str
    text: str
    is_error: bool = False
    offload_ref: str | None = None
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """The reasoning of a model. Shown to the user; sent back only if a provider wants it."""

    text: str
    type: Literal["reasoning"] = "reasoning"


Part = TextPart | ImagePart | ToolCallPart | ToolResultPart | ReasoningPart


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation or a request.

    `id` and `position` are None for messages that are not stored: the system prompt, a summary, a reminder. `tokens` is
    the uncalibrated estimate of the whole message, computed once when it is written. `kind` says what a message is for
    if its role does not: a summary and a recall are sent as user messages.
    """

    role: Role
    parts: tuple[Part, ...]
    tokens: int
    id: str | None = None
    position: int | None = None
    pinned: bool = False
    created_at: datetime | None = None
    kind: Kind = "message"

    @property
    def is_plain(self) -> bool:
        """Return whether it is a single text, like nearly every message, so that callers can skip other checks."""
        return len(self.parts) == 1 and isinstance(self.parts[0], TextPart)

    @property
    def is_empty(self) -> bool:
        """Return whether it has neither text nor another part, such as an image."""
        return not any(part.text if isinstance(part, TextPart) else True for part in self.parts)

    @property
    def text(self) -> str:
        if len(self.parts) == 1 and isinstance(self.parts[0], TextPart):
            return self.parts[0].text
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        if self.is_plain:
            return ()
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResultPart))


def with_data_urls(message: Message, urls: Mapping[str, str]) -> Message:
    """Return the message with the bytes of its images, by file id; without those that are not in `urls`."""
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message
    parts = (
        replace(part, data_url=urls.get(part.file_id)) if isinstance(part, ImagePart) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def last_position(messages: Iterable[Message]) -> int:
    """Return the highest position of the messages; -1 if none is stored."""
    return max((message.position for message in messages if message.position is not None), default=-1)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A finished compaction as the context sees it: `summary` covers everything up to `last_position`."""

    id: str
    summary: str
    last_position: int
    message_count: int
    tokens: int
    reminder: str = ""
    covered_tokens: int = 0
    """Estimate of all that it covers; 0 if the user cleared the context."""
    is_extract: bool = False
    """Whether the summary is an extract, i.e. verbatim sentences, and not written by a model."""
    made_at: datetime | None = None
    """When it was finished. Earlier questions are its tail; later turns count for the cooldown."""

    def covers(self, message: Message) -> bool:
        return message.position is not None and message.position <= self.last_position
