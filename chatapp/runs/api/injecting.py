"""Messages sent while an answer is being written."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router, Status

from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.api.messages import IdempotencyKey
from chatapp.conversations.schemas.messages import InjectedMessage
from chatapp.operations import clock
from chatapp.operations.http.schemas import answers
from chatapp.runs import runner, schemas
from chatapp.runs.actions.answering_again import receipt_of_run
from chatapp.runs.actions.injected_messages import inject_message, send_queued
from chatapp.runs.actions.sending import Receipt
from chatapp.runs.api.answers import accepted_ids
from chatapp.runs.api.contents import new_message

router = Router(tags=["messages"])


@router.post(
    "/conversations/{conversation_id}/inject",
    auth=allow("chat"),
    response=answers(404, 422, accepted=schemas.Injected),
)
async def inject(
    request: ApiRequest,
    conversation_id: str,
    message: InjectedMessage,
    idempotency_key: str | None = IdempotencyKey,
) -> Any:
    """Send a message into the answer that is being written; the model sees it before its next step. If the answer ends
    before that, another answer to this message follows. If none is being written, it is an ordinary message (`injected`
    is false)."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(_inject)(request.auth.user, conversation_id, message, idempotency_key)
    if receipt.is_new and not receipt.is_injected:
        runner.start(receipt.run_id)
    return _accepted(receipt)


def _accepted(receipt: Receipt) -> Any:
    return Status(202, accepted_ids(receipt) | {"injected": receipt.is_injected})


def _sent_again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return _accepted(receipt_of_run(request.auth.user, made))


@router.post(
    "/conversations/{conversation_id}/queue/send",
    auth=allow("chat"),
    response=answers(404, 409, accepted=schemas.Injected),
)
@creates(_sent_again)
async def send_held(request: ApiRequest, conversation_id: str) -> Any:
    """Send the messages that were held because you stopped the answer during which you sent them. A new message at the
    end of the conversation sends them, too. 409 if no message is held."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(send_queued)(
        user=request.auth.user, conversation_id=conversation_id, now=clock.now()
    )
    runner.start(receipt.run_id)
    return _accepted(receipt)


def _inject(user: User, conversation_id: str, sent: InjectedMessage, header_key: str | None) -> Receipt:
    conversation = accessible_conversation(user, conversation_id)  # checked before images are stored
    return inject_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=new_message(user, sent, header_key),
        now=clock.now(),
    )
