"""The immutable values that a context is made of."""

from __future__ import annotations

from dataclasses import dataclass
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
    """A reference to a stored image. `data_url` is filled only while it is in view of a model call."""

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
    """The reasoning of a model. Shown to the user; sent back only where a provider wants it."""

    text: str
    type: Literal["reasoning"] = "reasoning"


Part = TextPart | ImagePart | ToolCallPart | ToolResultPart | ReasoningPart


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation or a request.

    `id` and `position` are None for what is not stored: the system prompt, a summary, a reminder.
    `tokens` is the uncalibrated estimate of the whole message, computed once when it was written.
    `kind` says what a message is for where its role does not: a summary and a recall travel as user messages.
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
        """Return whether it is one text and nothing else, as nearly every message of a long view: readers
        need not look further."""
        return len(self.parts) == 1 and isinstance(self.parts[0], TextPart)

    @property
    def is_empty(self) -> bool:
        """Return whether it has neither words nor anything else, such as a picture alone."""
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A finished compaction as the context sees it: everything up to `last_position` is in `summary`."""

    id: str
    summary: str
    last_position: int
    message_count: int
    tokens: int
    reminder: str = ""
    covered_tokens: int = 0
    """Estimate of all it covers; 0 where the user cleared the context."""
    is_extract: bool = False
    """Whether no model wrote the summary: it is sentences of the conversation, word for word."""
    made_at: datetime | None = None
    """When it was finished. Questions before that are its tail, turns after it count for the cooldown."""
