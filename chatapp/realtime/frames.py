"""The frames that clients may send over the WebSocket."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from memory.bounds import MAX_ATTACHMENTS, MAX_ID_CHARS, MAX_PARTS, Id, Position
from memory.strict_types import StrictTypes

STORABLE = r"^[^\x00]*$"  # pydantic rejects lone surrogates as invalid JSON
ClientId = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS, pattern=STORABLE)]
ModelName = Annotated[str, Field(max_length=MAX_ID_CHARS, pattern=STORABLE)]


class _Frame(StrictTypes):
    model_config = ConfigDict(extra="forbid")


class Subscribe(_Frame):
    type: Literal["subscribe"]
    conversation_id: Id
    after_seq: Position = 0


class Unsubscribe(_Frame):
    type: Literal["unsubscribe"]
    conversation_id: Id


class TextContent(StrictTypes):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class ImageContent(StrictTypes):
    """`file_id` is the id of an upload of the same user."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["image"]
    file_id: Id


Part = Annotated[TextContent | ImageContent, Field(discriminator="type")]
Content = str | Annotated[list[Part], Field(max_length=MAX_PARTS)]


class _Message(_Frame):
    client_id: ClientId
    conversation_id: Id
    content: Content
    attachments: list[Id] = Field(default_factory=list, max_length=MAX_ATTACHMENTS)


class MessageSend(_Message):
    type: Literal["message.send"]
    parent: Id | None = None
    model: ModelName | None = None
    mode: Literal["react", "plan", "auto"] | None = None


class MessageInject(_Message):
    """A message into the answer that is being written; an ordinary message if none is."""

    type: Literal["message.inject"]


class ToolDecision(_Frame):
    type: Literal["tool.approve", "tool.deny"]
    run_id: Id
    call_id: Id


class RunStop(_Frame):
    type: Literal["run.stop"]
    run_id: Id


class MessageSync(_Frame):
    """The sender has the first `length` characters and requests the rest."""

    type: Literal["message.sync"]
    message_id: Id
    length: Position


class Ping(_Frame):
    type: Literal["ping"]


ClientFrame = (
    Subscribe | Unsubscribe | MessageSend | MessageInject | ToolDecision | RunStop | MessageSync | Ping
)
ClientFrameAdapter: TypeAdapter[ClientFrame] = TypeAdapter(
    Annotated[ClientFrame, Field(discriminator="type")]
)
