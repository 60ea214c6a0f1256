"""What the API answers, for its description and as a check. `mapping` makes the values; more fields may be added."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    RootModel,
    Tag,
    model_validator,
)

from agents.hooks import Hook
from chatapp.operations.http.schemas import Changes, Key, Moment, Name, PolicyFields, Shape, _line
from chatapp.operations.text import normalize_text
from memory.bounds import (
    MAX_ATTACHMENTS,
    MAX_CHARS,
    MAX_HOOKS,
    MAX_PARTS,
    MAX_TITLE_CHARS,
    Id,
)


class ActiveRun(Shape):
    id: str
    message_id: str


class Conversation(Shape):
    id: str
    title: str
    model: str | None
    agent: str | None
    shared_memory_of: str | None = Field(
        description="The agent in whose shared memory it was begun; nothing private of you is known in it."
    )
    mode: Literal["react", "plan", "auto"] | None = Field(description="Null: as its agent says.")
    pinned: bool
    archived: bool
    temporary: bool
    memory: Literal["on", "paused"]
    hooks: list[dict[str, Any]] = Field(description="Its own, after the deployment's and the agent's.")
    message_count: int
    last_seq: int
    last_activity_at: Moment
    created_at: Moment
    expires_at: Moment | None
    active_run: ActiveRun | None


class RunUsage(Shape):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    compaction_tokens: int = 0
    cost: float | None = None


def _aside(description: str) -> Any:
    """What a message has only where there is any."""
    return Field(None, description=description, exclude_if=lambda value: value is None)


class Message(Shape):
    id: str
    conversation_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str | list[dict[str, Any]] = Field(description="A string where it is plain text, else parts.")
    status: Literal["streaming", "complete", "cut", "stopped", "failed", "interrupted"] = Field(
        description="`cut`: it ended at a limit, which `error.category` names: length, content_filter or bound."
    )
    position: int
    parent: str | None = Field(description="Of a tool call, its result and an injected message: the answer.")
    kind: Literal["message", "injected"] = Field(description="Injected: sent while an answer was written.")
    siblings: list[str] | None = Field(
        None,
        description="Ids of all messages in its place, by edits or new answers, itself too; oldest first.",
    )
    pinned: bool
    forgotten: bool = Field(description="Its words, or some of them.")
    model: str | None
    usage: RunUsage | None
    created_at: Moment
    error: dict[str, str] | None = _aside(
        "Of an answer that is not whole: `{category, message}`, as its run has them."
    )
    run: dict[str, Any] | None = _aside(
        "Of an answer: `{id, status, error, mode, plan}`, as `/runs/{id}` has them."
    )
    tools: list[dict[str, Any]] | None = _aside(
        "Of an answer: the calls of its run, hooks' too, each as in the run's trace."
    )
    recalled: list[dict[str, Any]] | None = _aside(
        "Of an answer: what came back for it, as in the event `recall`."
    )
    notices: list[dict[str, str]] | None = _aside(
        "Of an answer: what was told on its way, `{kind, text}`; `hook`: what a hook did."
    )
    remembered: list[dict[str, str]] | None = _aside("What was learned up to it: `{entry_id, day, preview}`.")


class Imported(Shape):
    id: str
    message_count: int


def _message_text(text: str) -> str:
    return normalize_text(text, settings.MAX_MESSAGE_CHARS, "The message")


MessageText = Annotated[
    str,
    AfterValidator(_message_text),
    Field(json_schema_extra={"maxLength": settings.MAX_MESSAGE_CHARS}),
]
Title = Annotated[str, AfterValidator(_line), Field(max_length=MAX_TITLE_CHARS)]


MemoryState = Literal["on", "paused"]


Mode = Literal["react", "plan", "auto"]


class TextIn(BaseModel):
    type: Literal["text"]
    text: MessageText


class ImageIn(BaseModel):
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
        """The bytes of the data URL. Raises ValueError."""
        head, comma, body = (self.data_url or "").partition(",")
        if not head.startswith("data:image/") or not head.endswith(";base64") or not comma:
            raise ValueError("data_url must begin with data:image/…;base64,")
        try:
            return base64.b64decode(body, validate=True)
        except binascii.Error:
            raise ValueError("data_url is not valid base64") from None


PartIn = Annotated[TextIn | ImageIn, Field(discriminator="type")]


def _content_kind(value: Any) -> str:
    return "parts" if isinstance(value, list) else "text"


ContentIn = Annotated[
    Annotated[MessageText, Tag("text")] | Annotated[list[PartIn], Field(max_length=MAX_PARTS), Tag("parts")],
    Discriminator(_content_kind),
]


ConversationHooks = Annotated[
    list[Hook], Field(max_length=MAX_HOOKS, description="Its own, after the deployment's and the agent's.")
]


class NewConversation(BaseModel):
    title: Title = ""
    model: Id | None = None
    agent: Id | None = Field(None, description="By id or name; null is the default.")
    mode: Mode | None = Field(None, description="How its messages are answered; null: as the agent says.")
    temporary: bool = False
    memory: MemoryState = "on"
    context_policy: PolicyFields | None = None
    hooks: ConversationHooks = []


class ConversationChanges(Changes):
    NULLABLE = frozenset({"model", "agent", "mode", "context_policy", "hooks"})

    title: Title | None = None
    model: Id | None = None
    agent: Id | None = None
    mode: Mode | None = None
    pinned: bool | None = None
    archived: bool | None = None
    memory: MemoryState | None = None
    context_policy: PolicyFields | None = None
    hooks: ConversationHooks | None = None


class StreamOption(BaseModel):
    """`stream`: the answer as server-sent events; else one JSON answer when it is complete."""

    stream: bool = False


class RunOptions(StreamOption):
    model: Id | None = None
    mode: Mode | None = Field(None, description="How this is answered; the conversation's mode by default.")


class SentMessage(RunOptions):
    content: ContentIn
    attachments: list[Id] = Field(default_factory=list, max_length=MAX_ATTACHMENTS)
    client_id: Key | None = Field(None, description="Idempotency: the same key never sends twice.")


class PinIn(BaseModel):
    pinned: bool = Field(description="Whether it stays in context however long the conversation becomes.")


def _is_pin(body: Any) -> str:
    return "pin" if isinstance(body, dict) and "pinned" in body and "content" not in body else "edit"


class MessageChange(RootModel[Any]):
    """New words, or a pin alone."""

    root: Annotated[
        Annotated[PinIn, Tag("pin")] | Annotated[SentMessage, Tag("edit")], Discriminator(_is_pin)
    ]


class NewMessageIn(SentMessage):
    parent: Id | None = Field(None, description="The message to continue after; the last one by default.")


class ImportHead(BaseModel):
    """Of an import, all but its messages."""

    title: Title = ""
    model: Id | None = None
