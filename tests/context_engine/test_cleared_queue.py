"""Messages queued behind a stopped answer survive `clear_context`."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import clear_context
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Message
from chatapp.features.openai_api.actions import NewItem, add_items
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_queued_message_before_an_added_item_is_not_cleared(alice: User) -> None:
    ModelConfig.objects.create(
        name="M", model_id="m", base_url="http://127.0.0.1:1", is_default=True, context_size=32_000
    )
    conversation = create_conversation(user=alice, now=clock.now())
    key = str(conversation.pk)
    first = send_message(
        user=alice, conversation_id=key, new=NewMessage(text="Hello"), model=None, now=clock.now()
    )
    run = Run.objects.get(pk=first.run_id)
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    waiting = inject_message(user=alice, conversation_id=key, new=NewMessage(text="Held."), now=clock.now())
    stopped = Outcome(Run.Status.STOPPED, PartialAnswer(lease, "Half"))
    finish_run(lease=lease, outcome=stopped, now=clock.now())
    add_items(user=alice, conversation_id=key, items=[NewItem("user", "An item.")], now=clock.now())
    row = clear_context(user=alice, conversation_id=key, budget_tokens=10_000, now=clock.now())
    held = Message.objects.get(pk=waiting.message_id)
    assert held.position > row.last_position, "what waits is cleared, and is out of context when it is sent"
