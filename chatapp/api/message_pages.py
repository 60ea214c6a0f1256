"""A page of a conversation's messages: which one is asked for, and what it holds."""

from __future__ import annotations

from typing import Annotated, Any, Self

from ninja import Schema
from pydantic import Field, model_validator

from chatapp.api import shapes
from chatapp.errors import InvalidInput
from chatapp.models import Branch, User
from chatapp.selectors import message_pages
from chatapp.selectors.access import accessible_conversation, accessible_message
from chatapp.selectors.conversations import shape_messages
from memory.bounds import MAX_ID

MAX_PLACE_CHARS = 100


class PageAsked(Schema):
    before: str | None = Field(
        None, max_length=MAX_PLACE_CHARS, description="A position or a message id: only older ones."
    )
    after: str | None = Field(
        None, max_length=MAX_PLACE_CHARS, description="A position or a message id: only newer ones."
    )
    around: str | None = Field(
        None,
        max_length=MAX_PLACE_CHARS,
        description="A message id: with it in the middle; 409 while the conversation shows another branch.",
    )
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(bool(place) for place in (self.before, self.after, self.around)) > 1:
            raise ValueError("Ask for one of before, after and around.")
        return self


class MessagePage(shapes.Page[shapes.Message]):
    newer_cursor: str | None


def list_page(user: User, conversation_id: str, asked: PageAsked) -> dict[str, Any]:
    conversation = accessible_conversation(user, conversation_id)
    assert conversation.branch is not None
    page = _page(user, conversation.branch, asked)
    items = shape_messages(page.rows)
    return {"items": items, "next_cursor": page.older_cursor, "newer_cursor": page.newer_cursor}


def _page(user: User, branch: Branch, asked: PageAsked) -> message_pages.MessagePage:
    if asked.around:
        message = accessible_message(user, branch.conversation_id, asked.around)
        return message_pages.page_around(branch, message, asked.limit)
    if asked.after:
        return message_pages.page_after(branch, _position(user, branch, "after", asked.after), asked.limit)
    if asked.before:
        return message_pages.page_before(branch, _position(user, branch, "before", asked.before), asked.limit)
    return message_pages.newest_page(branch, asked.limit)


def _position(user: User, branch: Branch, field: str, place: str) -> int:
    if not place.isdecimal():
        return accessible_message(user, branch.conversation_id, place).position
    if int(place) > MAX_ID:
        details = [{"field": field, "message": "is larger than any position"}]
        raise InvalidInput(f"{field} is larger than any position.", details=details)
    return int(place)
