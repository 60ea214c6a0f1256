"""An answer that runs over midnight belongs as a whole to the day on which it was requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from agents.ports import CallResult, RequestedCall
from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.operations.errors import LeaseLost
from chatapp.runs.actions.answering_again import regenerate_message
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.actions.tool_calls import finish_tool_call, record_tool_calls
from chatapp.runs.models import Run
from memory.types import ToolResultPart
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import NOW

pytestmark = pytest.mark.django_db(transaction=True)

Clients = Callable[..., Client]
BEFORE = NOW.replace(hour=23, minute=58)
AFTER = BEFORE + timedelta(minutes=5)
FIRST, SECOND = BEFORE.date().isoformat(), AFTER.date().isoformat()
ASKED, FOUND, TOLD = "zinnia", "oleander", "celadon"


def begin(user: User) -> tuple[Conversation, Lease]:
    """Start a run before midnight with a tool call that ends after midnight."""
    conversation = create_conversation(user=user, now=BEFORE)
    new = NewMessage(f"What of the {ASKED}?")
    send_message(user=user, conversation_id=str(conversation.pk), new=new, model=None, now=BEFORE)
    lease = claim(conversation)
    call = RequestedCall("one", "look_up", json.dumps({"query": "it"}), 1, "running")
    record_tool_calls(lease=lease, calls=[call], spent=(), now=BEFORE)
    part = ToolResultPart("one", "look_up", f"It is of the {FOUND}.")
    finish_tool_call(lease=lease, result=CallResult(call, "done", part), now=AFTER)
    return conversation, lease


def claim(conversation: Conversation) -> Lease:
    run = Run.objects.get(conversation=conversation, status="queued")
    lease = claim_run(run_id=run.pk, holder="here", model_name="test", now=BEFORE)
    assert lease is not None
    return lease


def end(lease: Lease, text: str = f"It is {TOLD}.") -> None:
    finish_run(lease=lease, outcome=Outcome("complete", PartialAnswer(lease, text)), now=AFTER)


def forget_day(client: Client, day: str) -> int:
    return client.post("/api/v1/memory/forget", {"day": day}, content_type="application/json").status_code


def left() -> list[str]:
    return [word for word in (ASKED, FOUND, TOLD) if tables_with(word)]


@pytest.mark.mechanism("forgetting.day")
def test_an_answer_over_midnight_is_forgotten_with_the_first_day_as_a_whole(
    alice: User, api_client: Clients
) -> None:
    _, lease = begin(alice)
    end(lease)
    assert forget_day(api_client(alice), SECOND) == 404
    assert left() == [ASKED, FOUND, TOLD]
    assert forget_day(api_client(alice), FIRST) == 200
    assert left() == []


@pytest.mark.mechanism("forgetting.day")
def test_an_answer_in_progress_writes_nothing_after_its_day_was_forgotten(
    alice: User, api_client: Clients
) -> None:
    _, lease = begin(alice)
    assert forget_day(api_client(alice), FIRST) == 200
    with pytest.raises(LeaseLost):
        end(lease)
    assert left() == []


def test_forgetting_the_day_of_an_injected_message_ends_the_answer_and_keeps_the_first_day(
    alice: User, api_client: Clients
) -> None:
    conversation, lease = begin(alice)
    said = NewMessage(f"I like {TOLD}.")
    inject_message(user=alice, conversation_id=str(conversation.pk), new=said, now=AFTER)
    assert forget_day(api_client(alice), SECOND) == 200
    with pytest.raises(LeaseLost):
        end(lease)
    assert left() == [ASKED, FOUND]


@pytest.mark.parametrize("day", [FIRST, SECOND])
def test_a_regenerated_answer_belongs_to_its_own_day_and_to_that_of_its_question(
    alice: User, api_client: Clients, day: str
) -> None:
    conversation, lease = begin(alice)
    end(lease, "It blooms.")
    again = regenerate_message(
        user=alice,
        conversation_id=str(conversation.pk),
        message_id=str(lease.answer_id),
        model=None,
        now=AFTER,
    )
    end(claim(conversation))
    assert forget_day(api_client(alice), day) == 200
    assert Message.objects.get(pk=again.answer_id).parts == []
    assert left() == ([] if day == FIRST else [ASKED, FOUND])
