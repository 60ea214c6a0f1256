"""Continuing an answer after its context was cleared moves held messages, but the checkpoint stays in force."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import clear_context
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.runs.actions.answering_again import continue_run
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import Run
from chatapp.runs.run_context import describe_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice: User) -> Conversation:
    ModelConfig.objects.create(
        name="M", model_id="m", base_url="http://127.0.0.1:1", is_default=True, context_size=32_000
    )
    return create_conversation(user=alice, now=clock.now())


def send(user: User, conversation: Conversation, text: str, **more: str) -> Receipt:
    new = NewMessage(text=text, **more)
    return send_message(user=user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())


def claim(receipt: Receipt) -> Lease:
    run = Run.objects.get(pk=receipt.run_id)
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    return lease


def finish(lease: Lease, text: str, status: str = Run.Status.COMPLETE) -> None:
    finish_run(lease=lease, outcome=Outcome(status, PartialAnswer(lease, text)), now=clock.now())


@pytest.mark.parametrize("held", [False, True])
def test_continuing_an_answer_does_not_bring_back_cleared_messages(
    alice: User, conversation: Conversation, held: bool
) -> None:
    first, key = send(alice, conversation, "A secret question"), str(conversation.pk)
    lease = claim(first)
    if held:
        inject_message(user=alice, conversation_id=key, new=NewMessage(text="Held."), now=clock.now())
    finish(lease, "Half an answer", Run.Status.STOPPED)
    clear_context(user=alice, conversation_id=key, budget_tokens=10_000, now=clock.now())
    going_on = continue_run(user=alice, run_id=first.run_id, now=clock.now())

    context = describe_run(Run.objects.get(pk=going_on.run_id).pk).context
    assert context is not None
    texts = [message.text for message in context.inputs.messages]
    assert context.inputs.checkpoint is not None
    assert "A secret question" not in texts
