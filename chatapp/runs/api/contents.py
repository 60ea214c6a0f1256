"""Converts a request body or a frame to a message to store: joins its texts and stores inline images like uploads."""

from __future__ import annotations

from django.conf import settings

from chatapp.accounts.models import User
from chatapp.conversations.schemas.messages import ImageIn, InjectedMessage, SentMessage, TextIn
from chatapp.files.attachments import store_image
from chatapp.operations.database.text import normalize_text
from chatapp.operations.errors import InvalidInput
from chatapp.realtime.frames import ImageContent, MessageInject, MessageSend, TextContent
from chatapp.runs.actions.sending import NewMessage
from memory.bounds import MAX_ATTACHMENTS

Sent = InjectedMessage | MessageSend | MessageInject


def new_message(
    user: User,
    sent: Sent,
    header_key: str | None = None,
    *,
    parent_id: str | None = None,
    replaces_id: str | None = None,
) -> NewMessage:
    """Return the message to store. Images in data URLs are stored as files. Raise InvalidInput, TooLarge."""
    client_id = client_id_of(sent, header_key)
    return NewMessage(
        text=_text(sent),
        attachment_ids=_attachment_ids(user, sent),
        client_id=client_id,
        parent_id=parent_id,
        replaces_id=replaces_id,
        mode=(sent.mode or "") if isinstance(sent, SentMessage | MessageSend) else "",
    )


def client_id_of(sent: Sent, in_header: str | None) -> str | None:
    """Return the key of the message, from the body or the header. Raise InvalidInput if they differ."""
    in_body = sent.client_id
    if in_body and in_header and in_body != in_header:
        details = [{"field": "client_id", "message": "differs from the header Idempotency-Key"}]
        raise InvalidInput("client_id and the header Idempotency-Key differ; send one.", details=details)
    return in_body or in_header


def _text(sent: Sent) -> str:
    if isinstance(sent.content, str):
        text = sent.content
    else:
        text = "\n".join(part.text for part in sent.content if isinstance(part, TextIn | TextContent))
    return normalize_text(text, settings.MAX_MESSAGE_CHARS, "The message")


def _attachment_ids(user: User, sent: Sent) -> list[str]:
    """Return the ids of the images inside the content, then of the attached files, each once."""
    parts = () if isinstance(sent.content, str) else sent.content
    images = [part for part in parts if isinstance(part, ImageIn | ImageContent)]
    # Count them before any image is stored.
    if len(images) + len(sent.attachments) > MAX_ATTACHMENTS:
        details = [{"field": "attachments", "message": f"are more than {MAX_ATTACHMENTS}"}]
        raise InvalidInput(f"A message has at most {MAX_ATTACHMENTS} images.", details=details)
    inside = [_file_id(user, image) for image in images]
    return list(dict.fromkeys([*inside, *sent.attachments]))


def _file_id(user: User, image: ImageIn | ImageContent) -> str:
    """Return the id of an uploaded image, or store one that the content holds. The same image gets the same id, so that
    a repeated request is recognised."""
    if isinstance(image, ImageContent):
        return image.file_id
    if image.file_id:
        return image.file_id
    try:
        content = image.decoded()
    except ValueError as error:
        details = [{"field": "content", "message": str(error)}]
        raise InvalidInput(f"An image in the content cannot be read: {error}.", details=details) from None
    return str(store_image(user=user, name=image.name, content=content).pk)
