"""Data shown beside messages survives a reload: notices of runs and hooks, memory entries and tool calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from agents.events import Fact, HookFired, RunFinished, RunNotice, UsageTotals
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.long_term.models import MemoryEntry
from chatapp.realtime import event_log
from chatapp.runs.models import Run, ToolCall
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db


def answered(conversation: Conversation, number: int) -> Message:
    question, answer = say(conversation, f"Question {number}", "Answer", at=NOW + timedelta(minutes=number))
    Run.objects.create(
        conversation=conversation,
        user=conversation.user,
        question=question,
        answer=answer,
        status="complete",
        created_at=NOW,
    )
    return answer


def tell(conversation: Conversation, answer: Message, event: type[Fact], **fields: object) -> None:
    run = answer.run  # type: ignore[attr-defined]  # the other side of a one-to-one
    fact = event(conversation_id=str(conversation.pk), at=NOW, **{"run_id": str(run.pk)} | fields)
    event_log.append(conversation, fact, run=run)


def remember(conversation: Conversation, text: str, after: Message) -> MemoryEntry:
    at = after.created_at + timedelta(seconds=10)
    return MemoryEntry.objects.create(
        user=conversation.user,
        conversation=conversation,
        day=at.date(),
        text=text,
        created_at=at,
        written_at=at,
    )


def messages(client: Client, conversation: Conversation, query: str = "") -> list[dict[str, object]]:
    items: list[dict[str, object]] = client.get(
        f"/api/v1/conversations/{conversation.pk}/messages{query}"
    ).json()["items"]
    return items


def test_notices_and_hook_texts_are_listed_with_their_answer(
    alice: User, api_client: Callable[..., Client]
) -> None:
    conversation = new_conversation(alice)
    first = answered(conversation, 1)
    tell(conversation, first, RunNotice, kind="truncated", text="Older messages were left out.")
    tell(conversation, first, HookFired, hook_id="log", action="log", text="Turn 1")
    tell(conversation, first, RunFinished, status="complete", usage=UsageTotals())
    tell(
        conversation, first, HookFired, run_id=None, hook_id="end", action="log", text="The first turn ended"
    )
    second = answered(conversation, 2)
    tell(conversation, second, RunFinished, status="complete", usage=UsageTotals())
    tell(
        conversation,
        second,
        HookFired,
        run_id=None,
        hook_id="end",
        action="log",
        text="The second turn ended",
    )

    items = messages(api_client(alice), conversation)
    assert [item.get("notices") for item in items] == [
        None,
        [
            {"seq": 1, "kind": "truncated", "text": "Older messages were left out."},
            {"seq": 2, "kind": "hook", "text": "Turn 1"},
            {"seq": 4, "kind": "hook", "text": "The first turn ended"},
        ],
        None,
        [{"seq": 6, "kind": "hook", "text": "The second turn ended"}],
    ]


def test_a_memory_entry_is_listed_with_the_newest_message_before_it(
    alice: User, api_client: Callable[..., Client]
) -> None:
    conversation = new_conversation(alice)
    first = answered(conversation, 1)
    entry = remember(conversation, "The boat is called Halcyon.", after=first)
    answered(conversation, 2)

    items = messages(api_client(alice), conversation)
    note = {"entry_id": str(entry.pk), "day": "2026-11-21", "preview": "The boat is called Halcyon."}
    assert [item.get("remembered") for item in items] == [None, [note], None, None]
    older = messages(api_client(alice), conversation, "?before=2&limit=2")
    assert [item.get("remembered") for item in older] == [None, [note]]
    newer = messages(api_client(alice), conversation, "?limit=2")
    assert [item.get("remembered") for item in newer] == [None, None]


def test_a_forget_proposal_is_listed_with_its_message_until_it_is_answered(
    alice: User, api_client: Callable[..., Client]
) -> None:
    conversation = new_conversation(alice)
    [wish] = say(conversation, "Forget that I live in Paris.")
    proposal = ForgetProposal.objects.create(
        user=alice, conversation=conversation, asked_in=wish.pk, created_at=NOW
    )
    [item] = messages(api_client(alice), conversation)
    assert item["forget_proposal"] == str(proposal.pk)
    proposal.receipt = ForgetReceipt.objects.create(user=alice, what="chosen", at=NOW)
    proposal.save()
    [item] = messages(api_client(alice), conversation)
    assert "forget_proposal" not in item


def test_the_tool_calls_of_an_answer_are_listed_with_it_in_call_order(
    alice: User, api_client: Callable[..., Client]
) -> None:
    conversation = new_conversation(alice)
    answer = answered(conversation, 1)
    for ordinal, (name, state) in enumerate((("clock", "done"), ("pay", "denied"))):
        ToolCall.objects.create(
            run=answer.run,  # type: ignore[attr-defined]  # the other side of a one-to-one
            message=answer,
            step=1,
            ordinal=ordinal,
            call_id=f"call{ordinal}",
            name=name,
            state=state,
            is_idempotent=True,
            requested_at=NOW,
        )
    question, reply = messages(api_client(alice), conversation)
    assert "tools" not in question
    tools = reply["tools"]
    assert isinstance(tools, list)
    assert [(tool["name"], tool["state"]) for tool in tools] == [("clock", "done"), ("pay", "denied")]
