"""A message that a Stop holds, and a client that names the end of the conversation as the `parent` of its next one."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import is_queued
from chatapp.operations import clock
from chatapp.operations.errors import Conflict
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message, send_queued
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def send(user: User, conversation: Conversation, text: str, **more: str) -> Receipt:
    new = NewMessage(text=text, **more)
    return send_message(user=user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())


def finish(receipt: Receipt, lease: Lease, status: str) -> None:
    finish_run(lease=lease, outcome=Outcome(status, PartialAnswer(lease, "Words.")), now=clock.now())


def claim(receipt: Receipt) -> Lease:
    run = Run.objects.get(pk=receipt.run_id)
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    return lease


def test_a_held_message_that_was_answered_is_held_no_longer(alice: User) -> None:
    conversation = create_conversation(user=alice, now=clock.now())
    first = send(alice, conversation, "First?")
    lease = claim(first)
    new = NewMessage(text="Held.")
    held = inject_message(user=alice, conversation_id=str(conversation.pk), new=new, now=clock.now())
    finish(first, lease, Run.Status.STOPPED)

    # As the same message without `parent` does: at the end, so that the held one is sent along.
    second = send(alice, conversation, "Second?", parent_id=held.message_id)
    finish(second, claim(second), Run.Status.COMPLETE)

    row = Message.objects.select_related("parent").get(pk=held.message_id)
    assert not is_queued(row), "it was in the request of the second answer, and shows as waiting"
    with pytest.raises(Conflict):
        # Else a third answer is made to what was answered, below a message in the middle.
        send_queued(user=alice, conversation_id=str(conversation.pk), now=clock.now())
