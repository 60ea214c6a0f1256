"""What programs and pages may send. Texts come out normalised; ids stay strings until a selector looks them up."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    model_validator,
)

from agents.hooks import Hook
from chatapp.text import normalize_text
from memory.bounds import (
    MAX_ATTACHMENTS,
    MAX_CHARS,
    MAX_HOOKS,
    MAX_ID_CHARS,
    MAX_NAME_CHARS,
    MAX_PARTS,
    MAX_POLICY_FIELDS,
    MAX_TITLE_CHARS,
    MAX_TOKENS,
    Day,
    Id,
    Number,
)
from memory.policy import Strategy


def _message_text(text: str) -> str:
    return normalize_text(text, settings.MAX_MESSAGE_CHARS, "The message")


def _line(text: str) -> str:
    return " ".join(normalize_text(text, len(text)).split())


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not the name of a time zone, such as Europe/Berlin") from None
    return name


MessageText = Annotated[
    str,
    AfterValidator(_message_text),
    Field(json_schema_extra={"maxLength": settings.MAX_MESSAGE_CHARS}),
]
Title = Annotated[str, AfterValidator(_line), Field(max_length=MAX_TITLE_CHARS)]
Name = Annotated[str, AfterValidator(_line), Field(max_length=MAX_NAME_CHARS)]
TimeZone = Annotated[str, Field(max_length=64), AfterValidator(_time_zone)]
Key = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
PolicyFields = Annotated[dict[str, Any], Field(max_length=MAX_POLICY_FIELDS)]
MemoryState = Literal["on", "paused"]
Scope = Literal["chat", "read", "memory", "admin"]
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


class Changes(BaseModel):
    """Only what is sent is changed; null stands for "none" where that makes sense, and is refused elsewhere."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _refuse_null(self) -> Self:
        for name in self.model_fields_set - self.NULLABLE:
            if getattr(self, name) is None:
                raise ValueError(f"{name} may be left out, but it cannot be null")
        return self

    def sent(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


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


class ContextQuestion(BaseModel):
    query: MessageText = ""
    budget_tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_TOKENS,
        description="For all messages together. Tool schemas are not part of it: they stand in the model's reserve.",
    )
    model: Id | None = None


class CompactRequest(BaseModel):
    keep: Annotated[str, AfterValidator(_message_text), Field(max_length=10_000)] | None = Field(
        None, description="What the summary should keep, in the user's words."
    )
    strategy: Strategy | None = None
    wait: bool = Field(False, description="Answer when the summary is done.")
    preview: bool = Field(
        False, description="Only tell what would be summarised; calls no model, writes nothing."
    )


class SummaryChange(BaseModel):
    summary: Annotated[str, AfterValidator(_message_text), Field(min_length=1, max_length=100_000)]


EntryText = Annotated[
    str,
    Field(max_length=100_000),
    AfterValidator(_message_text),
    AfterValidator(str.strip),
    Field(min_length=1),
]


class NewEntry(BaseModel):
    text: EntryText
    day: Day | None = Field(None, description="Today, in your time zone, by default.")


class EntryChange(BaseModel):
    text: EntryText
    revision: Number | None = Field(None, description="The one you changed; 409 if it is another now.")


class RevisionIn(BaseModel):
    revision: Number


class MarkdownIn(BaseModel):
    markdown: MessageText


class MemorySettings(Changes):
    model_config = ConfigDict(extra="forbid")  # who misspells a pause must hear of it

    paused: bool | None = None
    review: bool | None = None
    profile: bool | None = None


class ProfileIn(BaseModel):
    markdown: Annotated[
        str, Field(max_length=20_000), AfterValidator(_message_text), AfterValidator(str.strip)
    ]


class NewToken(BaseModel):
    name: Annotated[str, AfterValidator(_line), Field(max_length=100)] = ""
    scopes: list[Scope] | None = Field(
        None, min_length=1, max_length=10, description="By default those of the caller, without admin."
    )


class MeChanges(Changes):
    name: Name | None = None
    time_zone: TimeZone | None = None


class AccountDeletion(BaseModel):
    password: str | None = Field(None, max_length=1_000, description="Asked of a page, not of a program.")


class Period(BaseModel):
    start: Day | None = Field(None, alias="from", description="First day; 30 days ago by default.")
    end: Day | None = Field(None, alias="to", description="Last day; today by default.")


class UsagePeriod(Period):
    group_by: Literal["day", "model", "purpose", "conversation"] = "day"


class ImportHead(BaseModel):
    """Of an import, all but its messages."""

    title: Title = ""
    model: Id | None = None
