"""One turn of a stored conversation: stores it, has the chat's runs answer it, and follows the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

from django.db import transaction

from agents.types import Finished, FinishReason, ModelItem, ReasoningDelta, TextDelta, TokenUsage
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation, lock_conversation
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import stored_answer_text
from chatapp.features.openai_api.actions import keep_instructions
from chatapp.features.openai_api.errors import RunFailed
from chatapp.features.openai_api.reading import decoded_image, inline_images
from chatapp.features.openai_api.schemas import ChatMessage
from chatapp.files.attachments import store_image
from chatapp.operations import clock
from chatapp.operations.database.text import normalize_text
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import InvalidInput
from chatapp.providers.models import ModelConfig
from chatapp.realtime.api.streams import ends_run
from chatapp.realtime.hub import Frame
from chatapp.realtime.subscriptions import Connection
from chatapp.runs import runner
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import Run
from chatapp.runs.selectors import RunAnswer, answer_of_run, has_ended
from memory.bounds import MAX_ATTACHMENTS

NEW = "new"
"""Used instead of an id to begin a conversation with this turn."""
CONVERSATION_PREFIX = "conv_"
NO_TOOLS_OF_CLIENTS = (
    "In a conversation that the server keeps, its own tools are used; a client's are for calls without one."
)
NO_FORMATS_OF_CLIENTS = (
    "In a conversation that the server keeps, answers are text; a format is for calls without one."
)
REASONS: dict[str, FinishReason] = {reason: reason for reason in get_args(FinishReason)}
"""Finish reasons by error category: if a limit cut an answer, its name is the category of the answer's error."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A client's next message in a conversation. `images` are data URLs; errors name the request field `field`."""

    text: str
    images: Sequence[str] = ()
    instructions: str = ""
    client_id: str | None = None
    parent_id: str | None = None
    field: str = "messages"


async def new_turn(
    messages: Sequence[ChatMessage], key: str | None, *, field: str = "messages", instructions: str = ""
) -> NewTurn:
    """Return the turn of a request with this key: the user's newest messages as one, and all its instructions.

    Raise InvalidInput, which names `field` if the last message is not the user's.
    """
    newest = _newest_of_user(messages, field)
    addresses = [address for message in newest for address in message.image_addresses]
    images = await inline_images(addresses)
    system = [message for message in messages if message.role in ("system", "developer")]
    texts = [instructions, *(text for message in system for text in message.texts)]
    return NewTurn(
        text="\n".join(text for message in newest for text in message.texts),
        images=[images[address] for address in addresses],
        instructions="\n\n".join(filter(None, texts)).strip(),
        client_id=key,
        field=field,
    )


def _newest_of_user(messages: Sequence[ChatMessage], field: str) -> list[ChatMessage]:
    """Return the user's messages after the last answer. Raise InvalidInput, naming `field`, if there are none."""
    newest: list[ChatMessage] = []
    for message in reversed(messages):
        # Skip system messages between questions: they are instructions.
        if message.role == "user":
            newest.insert(0, message)
        elif message.role in ("assistant", "tool"):
            break
    if not newest:
        sentence = "In a conversation the last message must be the user's."
        raise InvalidInput.in_field(field, "must end with a message of the user", sentence)
    return newest


def conversation_name(conversation_id: str | UUID) -> str:
    """Return the id in OpenAI's form, with the prefix `conv_`."""
    return f"{CONVERSATION_PREFIX}{UUID(str(conversation_id)).hex}"


def named_conversation(user: User, name: str) -> Conversation:
    """Return the conversation with this id, in our form or OpenAI's. Raise NotFound."""
    return accessible_conversation(user, name.removeprefix(CONVERSATION_PREFIX))


def begin_turn(
    user: User,
    conversation: Conversation | None,
    turn: NewTurn,
    model: ModelConfig | None,
) -> Receipt:
    """Store a message and queue its answer. `conversation` None creates one. Raise Conflict, InvalidInput, TooLarge."""
    now = clock.now()
    if not turn.text.strip() and not turn.images:
        raise InvalidInput.in_field(turn.field, "is empty", "The last message has no text and no image.")
    # Store images outside the transaction below: bytes are written before rows reference them.
    attachment_ids = store_images(user, turn.images, turn.field)
    conversation = conversation or _begun_before(user, turn.client_id)
    if conversation is not None:
        return _send(user, conversation, turn, attachment_ids, model, now)
    try:
        # Use one transaction, so that a refused question leaves no empty conversation.
        with transaction.atomic():
            conversation = create_conversation(user=user, now=now, model=model)
            return _send(user, conversation, turn, attachment_ids, model, now)
    except InvalidInput:
        # A concurrent request may have used the same key: the conversation committed first counts.
        conversation = _begun_before(user, turn.client_id)
        if conversation is None:
            raise
    return _send(user, conversation, turn, attachment_ids, model, now)


@transaction.atomic
def _send(
    user: User,
    conversation: Conversation,
    turn: NewTurn,
    attachment_ids: Sequence[str],
    model: ModelConfig | None,
    now: datetime,
) -> Receipt:
    conversation_id = str(conversation.pk)
    follows_id = None
    if turn.instructions:
        # Lock the conversation, so that a repeated request finds the first one and stores nothing again.
        lock_conversation(user, conversation_id)
        if not _was_sent(user, turn.client_id):
            follows_id = keep_instructions(
                user=user,
                conversation_id=conversation_id,
                text=turn.instructions,
                after=turn.parent_id,
                now=now,
            )
    new = NewMessage(
        text=normalize_text(turn.text, len(turn.text)),
        attachment_ids=attachment_ids,
        client_id=turn.client_id,
        parent_id=turn.parent_id,
        follows_id=follows_id,
    )
    return send_message(user=user, conversation_id=conversation_id, new=new, model=model, now=now)


def _was_sent(user: User, client_id: str | None) -> bool:
    # A conversation in the trash or in deletion holds no key.
    sent = Message.objects.filter(user=user, client_id=client_id, conversation__user__isnull=False)
    return client_id is not None and sent.exists()


def _begun_before(user: User, client_id: str | None) -> Conversation | None:
    """Return the conversation that the first request with this key created; None if the key is of a later turn."""
    if client_id is None:
        return None
    sent = Message.objects.filter(conversation__user=user, client_id=client_id)
    message = sent.select_related("conversation").first()
    if message is None:
        return None
    earlier = message.conversation.messages.filter(position__lt=message.position)
    return None if earlier.exclude(role=Message.Role.SYSTEM).exists() else message.conversation


def store_images(user: User, data_urls: Sequence[str], field: str) -> list[str]:
    """Store each image once and return the ids. The same image always has the same id. Raise InvalidInput, naming
    `field`."""
    if len(data_urls) > MAX_ATTACHMENTS:
        sentence = f"A message has at most {MAX_ATTACHMENTS} images."
        raise InvalidInput.in_field(field, "has more images", sentence)
    stored = [store_image(user=user, name="image", content=decoded_image(url)) for url in data_urls]
    # A repeated request must reference the same files: their ids are part of its hash.
    return list(dict.fromkeys(str(row.pk) for row in stored))


class TurnFollower:
    """Follows a run that this or another process executes. The run does not depend on its reader."""

    def __init__(self, user: User, receipt: Receipt) -> None:
        self.user = user
        self.receipt = receipt
        self.connection = Connection()
        self._text = ""
        self._reasoning_chars = 0

    async def items(self) -> AsyncGenerator[ModelItem, None]:
        """Yield the answer as it is generated, ended by `Finished`. Raise RunFailed, NotFound."""
        try:
            # Subscribe before the run starts, or events would be missed.
            await self.connection.watch(UUID(self.receipt.conversation_id), self.receipt.seq - 1)
            if self.receipt.is_new:
                runner.start(self.receipt.run_id)
            async with aclosing(self._until_end()) as items:
                async for item in items:
                    yield item
            answer = await retry_on_outage(answer_of_run)(self.user, self.receipt.run_id)
            content = answer.message["content"]
            text = content if isinstance(content, str) else text_of(content)
            # If the stored text differs from what was sent, it is too late to correct it.
            if text.startswith(self._text):
                for rest in self._take(0, text):
                    yield rest
            yield self._finished(answer)
        finally:
            self.connection.close("gone")
            await self.connection.unwatch_all()

    async def _until_end(self) -> AsyncGenerator[ModelItem, None]:
        if not self.receipt.is_new and await retry_on_outage(has_ended)(self.user, self.receipt.run_id):
            return
        async for frame in self.connection.frames():
            for item in await self._read(frame):
                yield item
            if ends_run(frame, self.receipt.run_id):
                return
        # The frames end before the run if this reader was too slow for them.
        raise RunFailed(
            "interrupted", "The connection ended before the answer; it is kept in the conversation."
        )

    async def _read(self, frame: Frame) -> list[ModelItem]:
        if frame.type not in ("text.delta", "message.snapshot", "reasoning.delta"):
            return []
        delta = json.loads(frame.text)
        if delta["message_id"] != self.receipt.answer_id:
            return []
        if frame.type == "reasoning.delta":
            return self._read_reasoning(delta)
        # Deltas may be lost on the way; the text so far fills the gap.
        if delta["offset"] > len(self._text):
            return self._take(0, await self._text_so_far())
        return self._take(delta["offset"], delta["text"])

    def _read_reasoning(self, delta: dict[str, Any]) -> list[ModelItem]:
        """Return the new part of the reasoning. Lost deltas leave a gap, which only the stored answer fills."""
        new = delta["text"][max(0, self._reasoning_chars - delta["offset"]) :]
        if not new:
            return []
        self._reasoning_chars = delta["offset"] + len(delta["text"])
        return [ReasoningDelta(new)]

    def _take(self, offset: int, text: str) -> list[ModelItem]:
        # A delta may overlap with earlier text.
        new = text[len(self._text) - offset :]
        self._text += new
        return [TextDelta(new)] if new else []

    async def _text_so_far(self) -> str:
        # The process of the run has the newest text; the stored text is up to a second older.
        text = runner.live_text(self.receipt.answer_id)
        if text is not None:
            return text
        return (await retry_on_outage(stored_answer_text)(self.user, self.receipt.answer_id)).text

    def _finished(self, answer: RunAnswer) -> Finished:
        if answer.status not in (Run.Status.COMPLETE, Run.Status.STOPPED):
            error = answer.error or {"category": "internal", "message": "The answer could not be finished."}
            raise RunFailed(error["category"], error["message"], error.get("detail", ""))
        category = (answer.error or {}).get("category", "")
        return Finished(REASONS.get(category, "stop"), usage_of(answer.usage))


def usage_of(usage: dict[str, Any]) -> TokenUsage:
    """Return the stored usage of a run."""
    return TokenUsage(
        usage.get("input_tokens", 0), usage.get("output_tokens", 0), usage.get("cached_tokens", 0)
    )
