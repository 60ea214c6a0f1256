"""Idempotency keys of queued messages: the same key gets the same response for at least 24 h."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.idempotency_keys import delete_old_keys
from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.operations import clock
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def claim(receipt: Receipt) -> Lease:
    lease = claim_run(
        run_id=Run.objects.get(pk=receipt.run_id).pk, holder="here", model_name="m", now=clock.now()
    )
    assert lease is not None
    return lease


def inject(user: User, conversation: Conversation, text: str) -> Receipt:
    new = NewMessage(text=text, client_id=text)
    return inject_message(user=user, conversation_id=str(conversation.pk), new=new, now=clock.now())


def test_two_queued_messages_can_both_be_sent_again_a_day_after_the_run(alice: User) -> None:
    conversation = create_conversation(user=alice, now=clock.now())
    asked = NewMessage(text="Hello")
    receipt = send_message(
        user=alice, conversation_id=str(conversation.pk), new=asked, model=None, now=clock.now()
    )
    lease = claim(receipt)
    first, second = inject(alice, conversation, "one"), inject(alice, conversation, "two")
    outcome = Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "Hi!"))
    finish_run(lease=lease, outcome=outcome, now=clock.now())

    Message.objects.update(created_at=clock.now() - timedelta(hours=24))
    delete_old_keys(now=clock.now())
    assert inject(alice, conversation, "two").message_id == second.message_id
    # A client that missed the response to the first message retries with its key.
    assert inject(alice, conversation, "one").message_id == first.message_id
