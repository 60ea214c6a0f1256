"""What a user may send as a message, from any door: a string, or parts of text and uploaded images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field

from chatapp.operations.text import normalize_text
from memory.bounds import MAX_PARTS, Id


class TextContent(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class ImageContent(BaseModel):
    """`file_id` is the id of an upload of the same user."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["image"]
    file_id: Id


Part = Annotated[TextContent | ImageContent, Field(discriminator="type")]
Content = str | Annotated[list[Part], Field(max_length=MAX_PARTS)]


def text_of_content(content: Content) -> str:
    """Normalised; raises TooLarge."""
    if isinstance(content, str):
        text = content
    else:
        text = "\n".join(part.text for part in content if isinstance(part, TextContent))
    return normalize_text(text, settings.MAX_MESSAGE_CHARS, "The message")


def attachment_ids(content: Content, attachments: Sequence[str]) -> list[str]:
    """The images inside the content, then the attached ones, each once."""
    inside = (
        []
        if isinstance(content, str)
        else [part.file_id for part in content if isinstance(part, ImageContent)]
    )
    return list(dict.fromkeys([*inside, *attachments]))
