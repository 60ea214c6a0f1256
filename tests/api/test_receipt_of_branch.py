"""The receipt of a repeated message injected into a run (chatapp/runs/actions/sending.py, `_answering_run`)."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message, take_injected
from chatapp.runs.actions.runs import PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, find_receipt, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_that_a_run_has_read_stays_with_that_run_whatever_follows(alice: User) -> None:
    ModelConfig.objects.create(
        name="M", model_id="m", base_url="http://127.0.0.1:1", is_default=True, context_size=32_000
    )
    key = str(create_conversation(user=alice, now=clock.now()).pk)

    def send(text: str, **more: str) -> str:
        new = NewMessage(text=text, **more)
        return send_message(user=alice, conversation_id=key, new=new, model=None, now=clock.now()).run_id

    run = Run.objects.get(pk=send("Hello"))
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    new = NewMessage(text="And in French.", client_id="injected-1")
    sent = inject_message(user=alice, conversation_id=key, new=new, now=clock.now())
    assert take_injected(lease=lease, known=(), now=clock.now())
    outcome = Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "Bonjour."))
    finish_run(lease=lease, outcome=outcome, now=clock.now())
    send("Once more, from here.", parent_id=sent.message_id)
    again = find_receipt(alice, key, new)
    assert again is not None
    assert again.run_id == str(run.pk)
    assert again.is_injected
