"""The messages of a conversation: list, send, edit, pin, delete, regenerate, show another branch."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase
from ninja import Query, Status
from ninja.params.functions import Header

from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.idempotency import asked_to_edit, creates
from chatapp.accounts.idempotency_keys import create_once
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.conversations import models
from chatapp.conversations.access import accessible_conversation, accessible_message
from chatapp.conversations.actions.conversations import pin_message
from chatapp.conversations.schemas.conversations import Conversation
from chatapp.conversations.schemas.messages import (
    Message,
    MessageChange,
    MessagePage,
    NewMessageIn,
    PageAsked,
    PinIn,
    RunOptions,
    SentMessage,
)
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.conversations.selectors.messages import full_message, is_queued, message_page
from chatapp.forgetting.services import delete_message
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import answers
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model
from chatapp.runs import runner
from chatapp.runs.actions.answering_again import regenerate_message, show_message
from chatapp.runs.actions.claims import Claim
from chatapp.runs.actions.edited_answers import edit_answer
from chatapp.runs.actions.injected_messages import edit_queued
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.api.answers import ANSWERS, DESCRIBED, answer_again, answer_with
from chatapp.runs.api.contents import client_id_of, new_message
from chatapp.runs.schemas import Answer
from memory.bounds import MAX_ID_CHARS

router = Router(tags=["messages"])

IdempotencyKey = Header(
    None,
    alias="Idempotency-Key",
    min_length=1,
    max_length=MAX_ID_CHARS,
    description="The same as `client_id` in the body.",
)


@router.get(
    "/conversations/{conversation_id}/messages",
    auth=allow("chat", "read"),
    response=answers(404, 409, ok=MessagePage),
)
def list_messages(request: ApiRequest, conversation_id: str, asked: Query[PageAsked]) -> Any:
    """List a page of messages, the newest page by default; oldest first within the page. Pass `next_cursor` as `before`
    to get older messages, and `newer_cursor` as `after` to get newer ones; null if there are none."""
    return message_page(request.auth.user, conversation_id, asked)


@router.get(
    "/conversations/{conversation_id}/messages/{message_id}",
    auth=allow("chat", "read"),
    response=answers(404, ok=Message),
)
def read_message(request: ApiRequest, conversation_id: str, message_id: str) -> Any:
    return full_message(accessible_message(request.auth.user, conversation_id, message_id))


@router.post(
    "/conversations/{conversation_id}/messages", auth=allow("chat"), response=ANSWERS, openapi_extra=DESCRIBED
)
async def send(
    request: ApiRequest,
    conversation_id: str,
    message: NewMessageIn,
    idempotency_key: str | None = IdempotencyKey,
) -> HttpResponseBase:
    """Store the message, then answer it.

    With `stream` the answer comes as server-sent events; without, as JSON when it is complete; with the header `Prefer:
    respond-async` only the ids come, at once. Disconnecting does not stop the answer. If the model fails, the status is
    502 (504 after a timeout, 503 if the service was interrupted, 413 if the question alone is too long for the model),
    `details` contains the message with the text written so far, and its `category` the reason; the question is stored
    in each case.
    """
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(_send)(
        request.auth.user,
        conversation_id,
        message,
        idempotency_key,
        runner.claim_for_request(),
        parent_id=message.parent,
    )
    return await answer_with(request, receipt, message.stream)


def _send(
    user: User,
    conversation_id: str,
    sent: SentMessage,
    header_key: str | None,
    claim: Claim | None,
    **place: str | None,
) -> Receipt:
    conversation = accessible_conversation(user, conversation_id)  # checked before images are stored
    return send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=new_message(user, sent, header_key, **place),
        model=_model(user, sent.model),
        now=clock.now(),
        claim=claim,
    )


def _model(user: User, name_or_id: str | None) -> ModelConfig | None:
    return accessible_model(user.pk, name_or_id) if name_or_id else None


@router.patch(
    "/conversations/{conversation_id}/messages/{message_id}",
    auth=allow("chat"),
    response=ANSWERS | {200: Answer | Message},
    openapi_extra=DESCRIBED,
)
async def edit(
    request: ApiRequest,
    conversation_id: str,
    message_id: str,
    body: MessageChange,
    idempotency_key: str | None = IdempotencyKey,
) -> Any:
    """Edit a message, or pin it.

    With `content` for a message of yours, the edited version is sent in its own branch; the old version stays. A
    message sent during a run that no model call has seen is changed in place. With `content` for an answer, your text
    is stored beside the old answer, in its own branch, with `kind` `edited`; no model is called. With `pinned` alone,
    the message is pinned or unpinned. All but the first return the message.
    """
    change = body.root
    if isinstance(change, PinIn):
        return await sync_to_async(_pin)(request.auth.user, conversation_id, message_id, change.pinned)
    edited = await sync_to_async(_edit_in_place)(
        request.auth.user, conversation_id, message_id, change, idempotency_key
    )
    if edited is not None:
        return edited
    # Only here, because an edit in place calls no model.
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(_send)(
        request.auth.user,
        conversation_id,
        change,
        idempotency_key,
        runner.claim_for_request(),
        replaces_id=message_id,
    )
    return await answer_with(request, receipt, change.stream)


def _edit_in_place(
    user: User, conversation_id: str, message_id: str, sent: SentMessage, header_key: str | None
) -> dict[str, Any] | None:
    """Return the edited message if no run follows; None if the edit has to be sent."""
    message = accessible_message(user, conversation_id, message_id)
    # Outside `create_once`, which would record the rows of images as the result of the edit.
    new = new_message(user, sent) if is_queued(message) else None
    body = sent.model_dump_json(exclude={"client_id", "stream"})
    row = create_once(
        asked_to_edit(user, message_id, client_id_of(sent, header_key), body),
        lambda: _edited(user, conversation_id, message, sent, new),
        lambda made: accessible_message(user, conversation_id, made),
    )
    return full_message(row) if row else None


def _edited(
    user: User, conversation_id: str, message: models.Message, sent: SentMessage, new: NewMessage | None
) -> models.Message | None:
    message_id = str(message.pk)
    if message.role == message.Role.ASSISTANT:
        return _edit_answer(user, conversation_id, message_id, sent)
    if new is None:
        return None
    return edit_queued(
        user=user, conversation_id=conversation_id, message_id=message_id, new=new, now=clock.now()
    )


def _edit_answer(user: User, conversation_id: str, message_id: str, sent: SentMessage) -> models.Message:
    if sent.attachments or not isinstance(sent.content, str):
        raise InvalidInput("An answer is edited as text alone.")
    return edit_answer(
        user=user,
        conversation_id=conversation_id,
        message_id=message_id,
        text=sent.content,
        now=clock.now(),
    )


def _pin(user: User, conversation_id: str, message_id: str, pinned: bool) -> dict[str, Any]:
    row = pin_message(
        user=user, conversation_id=conversation_id, message_id=message_id, pinned=pinned, now=clock.now()
    )
    return full_message(row)


@router.delete(
    "/conversations/{conversation_id}/messages/{message_id}",
    auth=allow("chat"),
    response=answers(404),
)
def delete(request: ApiRequest, conversation_id: str, message_id: str) -> Any:
    """Forget the text of a message, with everything derived from it; the message stays in place, empty and marked
    `forgotten`. An answer being written ends, unless the message was sent during it and no model call has seen it."""
    delete_message(request.auth.user, conversation_id, message_id, now=clock.now())
    return Status(204, None)


@router.post(
    "/conversations/{conversation_id}/messages/{message_id}/regenerate",
    auth=allow("chat"),
    response=ANSWERS,
    openapi_extra=DESCRIBED,
)
@creates(answer_again)
async def regenerate(
    request: ApiRequest, conversation_id: str, message_id: str, options: RunOptions = RunOptions()
) -> HttpResponseBase:
    """Write another answer to the same question, in its own branch."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(_regenerate)(request.auth.user, conversation_id, message_id, options)
    return await answer_with(request, receipt, options.stream)


def _regenerate(user: User, conversation_id: str, message_id: str, options: RunOptions) -> Receipt:
    return regenerate_message(
        user=user,
        conversation_id=conversation_id,
        message_id=message_id,
        model=_model(user, options.model),
        mode=options.mode or "",
        now=clock.now(),
    )


@router.post(
    "/conversations/{conversation_id}/messages/{message_id}/show",
    auth=allow("chat"),
    response=answers(404, 409, ok=Conversation),
)
def show(request: ApiRequest, conversation_id: str, message_id: str) -> Any:
    """Switch the conversation to the branch with this message, or to the one continued last if several have it. This
    branch is listed from now on, and the next message continues it. A message's `siblings` are its versions."""
    row = show_message(
        user=request.auth.user, conversation_id=conversation_id, message_id=message_id, now=clock.now()
    )
    return full_conversation(row)
