"""Messages queued behind an answer are held after a Stop, until the user decides about them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.operations import clock
from chatapp.runs.actions.endings import Outcome, finish_run, interrupt_run, request_stop
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lease(alice: User) -> Lease:
    """Return the lease of a run that the user has stopped, with a message queued behind its answer."""
    conversation = create_conversation(user=alice, now=clock.now())
    key = str(conversation.pk)
    sent = send_message(
        user=alice, conversation_id=key, new=NewMessage(text="Hello"), model=None, now=clock.now()
    )
    run = Run.objects.get(pk=sent.run_id)
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    inject_message(user=alice, conversation_id=key, new=NewMessage(text="Held?"), now=clock.now())
    request_stop(run=run, now=clock.now())
    return lease


def test_a_stop_while_the_end_of_a_run_is_stored_holds_queued_messages(lease: Lease) -> None:
    """`runner.cancel` leaves such a run alone, so its outcome is the one before the Stop."""
    outcome = Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "Hi!"))
    assert finish_run(lease=lease, outcome=outcome, now=clock.now()) is None
    assert not Run.active().exists()


def test_a_stop_of_an_answer_whose_process_died_holds_queued_messages(lease: Lease) -> None:
    now = clock.now() + timedelta(minutes=5)
    assert interrupt_run(run_id=lease.run_id, fence=lease.fence, now=now)
    assert not Run.active().exists(), "the user pressed Stop, and another answer begins"
