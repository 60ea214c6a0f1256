"""What a browser or program may say over the socket (API.md, section 3)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from chatapp.conversations.content import Content
from memory.bounds import MAX_ATTACHMENTS, MAX_ID_CHARS, Id, Position

STORABLE = r"^[^\x00]*$"  # lone surrogates are no JSON to pydantic
Key = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS, pattern=STORABLE)]
Name = Annotated[str, Field(max_length=MAX_ID_CHARS, pattern=STORABLE)]


class Subscribe(BaseModel):
    type: Literal["subscribe"]
    conversation_id: Id
    after_seq: Position = 0


class Unsubscribe(BaseModel):
    type: Literal["unsubscribe"]
    conversation_id: Id


class MessageSend(BaseModel):
    type: Literal["message.send"]
    client_id: Key
    conversation_id: Id
    content: Content
    attachments: list[Id] = Field(default_factory=list, max_length=MAX_ATTACHMENTS)
    parent: Id | None = None
    model: Name | None = None
    mode: Literal["react", "plan", "auto"] | None = None


class MessageInject(BaseModel):
    """Into the answer that is being written; an ordinary message where none is."""

    type: Literal["message.inject"]
    client_id: Key
    conversation_id: Id
    content: Content
    attachments: list[Id] = Field(default_factory=list, max_length=MAX_ATTACHMENTS)


class ToolApprove(BaseModel):
    type: Literal["tool.approve"]
    run_id: Id
    call_id: Id


class ToolDeny(BaseModel):
    type: Literal["tool.deny"]
    run_id: Id
    call_id: Id


class RunStop(BaseModel):
    type: Literal["run.stop"]
    run_id: Id


class MessageSync(BaseModel):
    """The sender has the first `length` characters."""

    type: Literal["message.sync"]
    message_id: Id
    length: Position


class Ping(BaseModel):
    type: Literal["ping"]


ClientFrame = (
    Subscribe
    | Unsubscribe
    | MessageSend
    | MessageInject
    | ToolApprove
    | ToolDeny
    | RunStop
    | MessageSync
    | Ping
)
ClientFrameAdapter: TypeAdapter[ClientFrame] = TypeAdapter(
    Annotated[ClientFrame, Field(discriminator="type")]
)
