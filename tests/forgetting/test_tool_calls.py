"""Arguments and results of tool calls are forgotten with their answer, and with the text that they contain."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client

from agents.plan.steps import PlanStep
from agents.ports import CallResult, RequestedCall
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.conversations.schemas.messages import RESULT_PREVIEW_CHARS
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry, Profile
from chatapp.operations import clock
from chatapp.operations.errors import LeaseLost
from chatapp.recall.actions.sources import note_read
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run, record_facts, record_plan
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.actions.tool_calls import finish_tool_call, record_tool_calls
from chatapp.runs.models import Run, ToolCall
from memory.types import ToolResultPart
from tests.forgetting.everywhere import tables_with
from tests.forgetting.test_while_it_is_read import in_context, keep_request
from tests.memory_store.rows import finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)

Clients = Callable[..., Client]
FORGET = "/api/v1/memory/forget"
ASKED = "zinnia"
FOUND = "oleander"


def begin(user: User, text: str = "Look it up.") -> tuple[Conversation, Lease]:
    conversation = create_conversation(user=user, now=clock.now())
    new = NewMessage(text)
    sent = send_message(user=user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())
    lease = claim_run(run_id=UUID(sent.run_id), holder="here", model_name="test", now=clock.now())
    assert lease is not None
    return conversation, lease


def record(lease: Lease, *call_ids: str, state: str = "running", plan_step: str = "") -> list[RequestedCall]:
    arguments = json.dumps({"query": ASKED})
    calls = [RequestedCall(call_id, "look_up", arguments, 1, state) for call_id in call_ids]
    record_tool_calls(lease=lease, calls=calls, spent=(), now=clock.now(), plan_step=plan_step)
    return calls


def found(call: RequestedCall, text: str = f"It is {FOUND}.") -> CallResult:
    return CallResult(call, "done", ToolResultPart(call.call_id, call.name, text))


def finish(lease: Lease, call: RequestedCall, text: str = f"It is {FOUND}.") -> None:
    finish_tool_call(lease=lease, result=found(call, text), now=clock.now())


def end(lease: Lease) -> None:
    outcome = Outcome("complete", PartialAnswer(lease, "I see."))
    finish_run(lease=lease, outcome=outcome, now=clock.now())


def forget(client: Client, **wish: str) -> None:
    answer = client.post(FORGET, json.dumps(wish), content_type="application/json")
    assert answer.status_code == 200, answer.content


def day_of(lease: Lease) -> str:
    """Return the day of the run in the user's time zone. Midnight may have passed since."""
    run = Run.objects.select_related("user").get(pk=lease.run_id)
    return run.created_at.astimezone(run.user.zone).date().isoformat()


# --- With the answer ---------------------------------------------------------------------------------------


@pytest.mark.mechanism("forgetting.tools")
@pytest.mark.parametrize("what", ["day", "answer"])
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "one is running"])
def test_tool_calls_are_forgotten_with_their_answer(
    alice: User, api_client: Clients, what: str, ended: bool
) -> None:
    conversation, lease = begin(alice)
    first, second = record(lease, "first", "second")
    finish(lease, first)
    if ended:
        finish(lease, second)
        end(lease)
    client = api_client(alice)
    forget(client, **({"day": day_of(lease)} if what == "day" else {"message_id": str(lease.answer_id)}))
    assert [word for word in (ASKED, FOUND) if tables_with(word)] == []
    shown = client.get(f"/api/v1/conversations/{conversation.pk}/messages").json()["items"]
    assert [call["preview"] for message in shown for call in message.get("tools", [])] == ["", ""]
    with pytest.raises(LeaseLost):
        finish(lease, second)


@pytest.mark.mechanism("forgetting.tools")
def test_tool_calls_of_a_plan_step_are_forgotten_with_their_answer(alice: User, api_client: Clients) -> None:
    conversation, lease = begin(alice)
    [call] = record(lease, "first", plan_step="one")
    finish(lease, call)
    end(lease)
    sent = json.dumps({"parts": [{"call_id": "first", "text": FOUND}]})
    RequestText.objects.create(conversation=conversation, sha256="0" * 64, source="history", content=sent)
    forget(api_client(alice), message_id=str(lease.answer_id))
    assert [word for word in (ASKED, FOUND) if tables_with(word)] == []


def test_a_plan_is_forgotten_with_its_answer(alice: User, api_client: Clients) -> None:
    _, lease = begin(alice)
    step = PlanStep(id="one", title=ASKED, task=f"Look up {ASKED}.", state="done", result=f"It is {FOUND}.")
    record_plan(lease=lease, steps=[step], spent=(), now=clock.now())
    end(lease)
    assert tables_with(FOUND)
    forget(api_client(alice), message_id=str(lease.answer_id))
    assert [word for word in (ASKED, FOUND) if tables_with(word)] == []


def test_tool_calls_of_another_answer_stay(alice: User, api_client: Clients) -> None:
    for_good, kept = (begin(alice)[1] for _ in range(2))
    for lease in (for_good, kept):
        [call] = record(lease, "first")
        finish(lease, call)
        end(lease)
    forget(api_client(alice), message_id=str(for_good.answer_id))
    assert FOUND in ToolCall.objects.get(run=kept.run_id).result[0]["text"]
    assert {"chatapp_message", "chatapp_toolcall"} <= set(tables_with(FOUND))


@pytest.mark.mechanism("forgetting.tools")
def test_tool_results_in_summaries_and_memory_are_forgotten_with_their_answer(
    alice: User, api_client: Clients
) -> None:
    conversation, lease = begin(alice, "When does the ferry leave? I am in room 12.")
    [call] = record(lease, "first")
    finish(lease, call, f"The shed with the {FOUND} opens at seven.")
    end(lease)
    question, *_, answer = conversation.messages.order_by("position")
    summary = f"The user is in room 12. The register of the office names the {FOUND}."
    compaction = finished_compaction(conversation, summary=summary)
    Compaction.objects.filter(pk=compaction.pk).update(last_position=answer.position)
    entry = record_entry(
        compaction=compaction,
        text=summary,
        first_message_id=question.pk,
        last_message_id=answer.pk,
        at=clock.now(),
    )
    assert entry is not None
    forget(api_client(alice), message_id=str(lease.answer_id))
    assert tables_with(FOUND) == []
    entry.refresh_from_db()
    assert entry.text == "The user is in room 12."
    assert "I am in room 12." in conversation.compactions.get().summary


KNOWN = "Bella the dachshund is allergic to walnuts."


@pytest.mark.mechanism("forgetting.tools")
@pytest.mark.parametrize("tool", ["memory_search", "look_up"])
@pytest.mark.parametrize("what", ["day", "answer"])
@pytest.mark.sqlite
def test_forgetting_an_answer_keeps_known_facts_that_its_tool_repeated(
    alice: User, api_client: Clients, what: str, tool: str
) -> None:
    """Memory contained the fact before, so it was not learned from the tool."""
    conversation, lease = begin(alice, "What is the weather like?")
    [call] = record(lease, "first")
    finish(lease, replace(call, name=tool), f"Found in memory:\n2024-01-03\nuser: {KNOWN}")
    end(lease)
    before = clock.now() - timedelta(days=700)
    kept = MemoryEntry.objects.create(
        user=alice, conversation=conversation, day=before.date(), text=KNOWN, created_at=before
    )
    Profile.objects.create(user=alice, text=f"# About\n- {KNOWN}\n- Likes tea.\n")
    forget(
        api_client(alice),
        **({"day": day_of(lease)} if what == "day" else {"message_id": str(lease.answer_id)}),
    )
    kept.refresh_from_db()
    assert kept.text == KNOWN
    assert KNOWN in Profile.objects.get(user=alice).text


@pytest.mark.mechanism("forgetting.tools")
@pytest.mark.parametrize("heard", ["said by its user", "from memory alone"])
def test_forgetting_an_answer_keeps_profile_lines_that_a_memory_tool_returned(
    alice: User, api_client: Clients, heard: str
) -> None:
    said = KNOWN if heard == "said by its user" else "It is about a dog."
    older = new_conversation(alice, at=clock.now() - timedelta(days=700))
    say(older, said, "Noted.")
    _, lease = begin(alice)
    [call] = record(lease, "first")
    finish(lease, replace(call, name="memory_read"), KNOWN)
    end(lease)
    Profile.objects.create(user=alice, text=f"- {KNOWN}\n")
    forget(api_client(alice), message_id=str(lease.answer_id))
    assert KNOWN in Profile.objects.get(user=alice).text


# --- With the text that they contain ------------------------------------------------------------------------

SECRET = "7731-heliotrope"
SAID = f"The gate code of the depot is {SECRET}."
LONG = "x" * RESULT_PREVIEW_CHARS + f"\nuser: […] {SAID}"
"""The secret comes after the preview, so the event of this result does not contain it."""


@pytest.mark.mechanism("forgetting.tools")
def test_forgotten_text_is_removed_from_tool_results_beyond_the_preview(
    alice: User, api_client: Clients
) -> None:
    message, _ = say(new_conversation(alice), f"{SAID} Bread is cheap.", "Noted.")
    _, lease = begin(alice)
    note_read(lease.run_id, [message.pk])
    [call] = record(lease, "first")
    finish(lease, call, LONG)
    end(lease)
    forget(api_client(alice), message_id=str(message.pk))
    assert tables_with(SECRET) == []


def test_forgotten_text_is_removed_from_long_tool_arguments(alice: User, api_client: Clients) -> None:
    said = f'"Zinnia" is what they call it, and {SAID}'
    message, _ = say(new_conversation(alice), said, "Noted.")
    _, lease = begin(alice)
    note_read(lease.run_id, [message.pk])
    arguments = json.dumps({"filler": "x" * 5000, "query": said})
    call = RequestedCall("first", "look_up", arguments, 1, "running")
    record_tool_calls(lease=lease, calls=[call], spent=(), now=clock.now())
    finish(lease, call)
    end(lease)
    forget(api_client(alice), message_id=str(message.pk))
    assert tables_with(SECRET) == []


@pytest.mark.parametrize(
    ("asked", "returned"),
    [
        (json.dumps({"filler": "x" * 5000, "text": f"Notes:\n{SAID}"}), "Written."),
        pytest.param(
            json.dumps({"filler": "x" * 5000, "text": f"Ä {SAID}"}), "Written.", marks=pytest.mark.sqlite
        ),
        pytest.param(json.dumps({"filler": "x" * 5000, SAID: True}), "Written.", marks=pytest.mark.sqlite),
        (f"not JSON: n{SAID}", "Written."),
        pytest.param("[" * 5_000 + SAID, "Written.", marks=pytest.mark.sqlite),
        pytest.param("{}", f"_{SAID}_", marks=pytest.mark.sqlite),
    ],
    ids=["a line", "escaped", "a name", "broken", "deep", "emphasis"],
)
@pytest.mark.parametrize("more", [0, 80], ids=["alone", "among many"])
def test_text_of_a_forgotten_conversation_is_removed_from_tool_calls_in_any_notation(
    alice: User, api_client: Clients, more: int, asked: str, returned: str
) -> None:
    conversation = new_conversation(alice)
    planks = [f"Plank {number} of the fence is painted green." for number in range(more)]
    message, *_ = say(conversation, SAID, *planks)
    _, lease = begin(alice, "Write my note.")
    note_read(lease.run_id, [message.pk])
    call = RequestedCall("first", "write_note", asked, 1, "running")
    record_tool_calls(lease=lease, calls=[call], spent=(), now=clock.now())
    finish(lease, call, returned)
    end(lease)
    forget(api_client(alice), conversation_id=str(conversation.pk))
    assert tables_with(SECRET) == []


def test_a_run_whose_tool_may_have_returned_the_text_is_stopped_while_another_call_waits(
    alice: User, api_client: Clients
) -> None:
    message, _ = say(new_conversation(alice), SAID, "Noted.")
    conversation, lease = begin(alice)
    record_facts(lease=lease, facts=[in_context(conversation, lease.run_id)])
    keep_request(lease.run_id)
    [call], _ = record(lease, "first"), record(lease, "second", state="waiting")
    finish(lease, call, "It is the number of the year, then the flower.")
    forget(api_client(alice), message_id=str(message.pk))
    assert Run.objects.get(pk=lease.run_id).status == Run.Status.INTERRUPTED


def test_a_run_that_only_waits_for_its_user_continues(alice: User, api_client: Clients) -> None:
    message, _ = say(new_conversation(alice), SAID, "Noted.")
    conversation, lease = begin(alice)
    record_facts(lease=lease, facts=[in_context(conversation, lease.run_id)])
    keep_request(lease.run_id)
    record(lease, "first", state="waiting")
    forget(api_client(alice), message_id=str(message.pk))
    assert Run.objects.get(pk=lease.run_id).status == Run.Status.RUNNING


@pytest.mark.mechanism("forgetting.tools")
def test_a_forgotten_shared_entry_is_removed_from_tool_results_of_other_users(
    alice: User, bob: User, api_client: Clients
) -> None:
    agent = Agent.objects.create(name="Porter", shares_memory=True)
    entry = MemoryEntry.objects.create(
        user=alice,
        text=SAID,
        day=clock.now().date(),
        created_at=clock.now(),
        scope=agent,
        shared_in=agent.pk,
    )
    conversation, lease = begin(bob)
    Conversation.objects.filter(pk=conversation.pk).update(scope=agent, shared_in=agent.pk)
    note_read(lease.run_id, [entry.pk])
    [call] = record(lease, "first")
    finish(lease, call, LONG)
    end(lease)
    path = f"/api/v1/conversations/{conversation.pk}/messages"
    assert SECRET in api_client(bob).get(path).content.decode()
    forget(api_client(alice), entry_id=str(entry.pk))
    assert SECRET not in api_client(bob).get(path).content.decode()
    assert tables_with(SECRET) == []
