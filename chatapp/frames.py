"""What a browser or program may say over the socket (API.md, section 3)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from chatapp.content import Content

STORABLE = r"^[^\x00]*$"  # lone surrogates are no JSON to pydantic
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=STORABLE)]
Name = Annotated[str, Field(max_length=200, pattern=STORABLE)]


class Subscribe(BaseModel):
    type: Literal["subscribe"]
    conversation_id: str
    after_seq: int = Field(default=0, ge=0)


class Unsubscribe(BaseModel):
    type: Literal["unsubscribe"]
    conversation_id: str


class MessageSend(BaseModel):
    type: Literal["message.send"]
    client_id: Key
    conversation_id: str
    content: Content
    attachments: list[str] = Field(default_factory=list, max_length=20)
    parent: str | None = None
    model: Name | None = None
    mode: Literal["react", "plan", "auto"] | None = None


class MessageInject(BaseModel):
    """Into the answer that is being written; an ordinary message where none is."""

    type: Literal["message.inject"]
    client_id: Key
    conversation_id: str
    content: Content
    attachments: list[str] = Field(default_factory=list, max_length=20)


class ToolApprove(BaseModel):
    type: Literal["tool.approve"]
    run_id: str
    call_id: str


class ToolDeny(BaseModel):
    type: Literal["tool.deny"]
    run_id: str
    call_id: str


class RunStop(BaseModel):
    type: Literal["run.stop"]
    run_id: str


class MessageSync(BaseModel):
    """The sender has the first `length` characters."""

    type: Literal["message.sync"]
    message_id: str
    length: int = Field(ge=0)


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
