"""The records of a running answer's tool calls, and the plain SQL that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import pytest

from agents.loop.tool_calls import calling_part
from agents.ports import CallResult, RequestedCall
from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.message_values import parts_to_json
from chatapp.conversations.models import Conversation, Message
from chatapp.operations import clock
from chatapp.operations.database.statements import insert_rows, update_row
from chatapp.operations.errors import LeaseLost
from chatapp.providers.models import Usage
from chatapp.providers.usage import CallTimes, CallUsage
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.runs import Lease, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.actions.tool_calls import finish_tool_call, record_tool_calls
from chatapp.runs.models import Run, RunStep, ToolCall
from memory.types import ToolResultPart

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return create_conversation(user=alice, now=clock.now())


@pytest.fixture
def lease(alice: User, conversation: Conversation) -> Lease:
    new = NewMessage("Look it up.")
    sent = send_message(
        user=alice, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now()
    )
    lease = claim_run(run_id=UUID(sent.run_id), holder="here", model_name="test", now=clock.now())
    assert lease is not None
    return lease


def record(lease: Lease, *call_ids: str, spent: Sequence[CallUsage] = ()) -> list[RequestedCall]:
    calls = [RequestedCall(call_id, "look_up", "{}", 1, "running") for call_id in call_ids]
    record_tool_calls(lease=lease, calls=calls, spent=spent, now=clock.now())
    return calls


def finish(lease: Lease, call: RequestedCall) -> None:
    part = ToolResultPart(call.call_id, call.name, f"found {call.call_id}")
    finish_tool_call(lease=lease, result=CallResult(call, "done", part), now=clock.now())


def said(conversation: Conversation) -> list[tuple[int, str, str]]:
    """Return position, role and text of all messages, in order."""
    shown = []
    for row in Message.objects.filter(conversation=conversation).order_by("position"):
        texts = [part.get("text") or f"{part['name']} {part['call_id']}" for part in row.parts]
        shown.append((row.position, row.role, ", ".join(texts)))
    return shown


def test_results_become_messages_in_call_order_once_their_step_is_complete(
    lease: Lease, conversation: Conversation
) -> None:
    one, two = record(lease, "one", "two")
    finish(lease, two)
    assert said(conversation) == [(0, "user", "Look it up."), (1, "assistant", "")]
    finish(lease, one)
    assert said(conversation) == [
        (0, "user", "Look it up."),
        (1, "assistant", "look_up one, look_up two"),
        (2, "tool", "found one"),
        (3, "tool", "found two"),
        (4, "assistant", ""),
    ]
    asked_in = set(ToolCall.objects.values_list("message__position", flat=True))
    assert asked_in == {1}


def test_a_message_sent_meanwhile_stays_behind_the_answer(
    alice: User, lease: Lease, conversation: Conversation
) -> None:
    [one] = record(lease, "one")
    new = NewMessage("In French, please.")
    inject_message(user=alice, conversation_id=str(conversation.pk), new=new, now=clock.now())
    finish(lease, one)
    assert said(conversation) == [
        (0, "user", "Look it up."),
        (1, "assistant", "look_up one"),
        (2, "tool", "found one"),
        (3, "assistant", ""),
        (4, "user", "In French, please."),
    ]
    assert Conversation.objects.get().next_position == 5


def test_calls_and_results_are_stored_once_however_often_they_are_recorded(
    lease: Lease, conversation: Conversation
) -> None:
    """The response to a commit can be lost with the connection, and the run retries."""
    times = CallTimes(clock.now(), first_token_ms=1, duration_ms=2, request_n=1)
    spent = [CallUsage(None, "chat", 10, 2, times=times)]
    for _ in range(2):
        [one] = record(lease, "one", spent=spent)
    for _ in range(2):
        finish(lease, one)
    assert len(said(conversation)) == 4
    assert Usage.objects.count() == RunStep.objects.count() == ToolCall.objects.count() == 1
    told = conversation.events.filter(type="tool").order_by("seq").values_list("payload__state", flat=True)
    assert list(told) == ["running", "done"]
    assert list(conversation.events.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, Conversation.objects.get().last_seq + 1)
    )


@pytest.mark.parametrize("how", ["finished", "interrupted"])
def test_calls_that_run_during_an_upgrade_are_stored_once(
    alice: User, lease: Lease, conversation: Conversation, how: str
) -> None:
    """The previous version wrote the calling message before the calls ran, and each result as it arrived."""
    one, two = record(lease, "one", "two")
    answer = Message.objects.get(pk=lease.answer_id)
    for place, role in enumerate(("assistant", "tool"), start=1):
        Message.objects.filter(pk=answer.pk).update(position=place + 1)
        parts = {
            "assistant": [calling_part(call.call_id, call.name, "{}") for call in (one, two)],
            "tool": [ToolResultPart("one", "look_up", "found one")],
        }[role]
        Message.objects.create(
            conversation=conversation,
            branch=answer.branch,
            user=alice,
            parent=answer,
            position=place,
            role=role,
            parts=parts_to_json(parts),
            created_at=clock.now(),
        )
    Conversation.objects.update(next_position=4)
    calls = ToolCall.objects.order_by("ordinal")
    calls.update(message=Message.objects.get(position=1))
    calls.filter(call_id="one").update(
        state="done", is_told=True, result=Message.objects.get(position=2).parts
    )
    if how == "finished":
        finish(lease, two)
    else:
        interrupt_run(run_id=lease.run_id, fence=lease.fence, now=clock.now())
    told = said(conversation)
    assert told[:3] == [
        (0, "user", "Look it up."),
        (1, "assistant", "look_up one, look_up two"),
        (2, "tool", "found one"),
    ]
    assert [(place, role) for place, role, _ in told[3:]] == [(3, "tool"), (4, "assistant")]
    assert set(calls.values_list("message__position", "is_told")) == {(1, True)}


def test_the_call_numbers_of_a_run_continue_from_step_to_step(lease: Lease) -> None:
    for number in (1, 2):
        times = CallTimes(clock.now(), first_token_ms=1, duration_ms=2, request_n=number)
        calls = record(lease, f"a{number}", f"b{number}", spent=[CallUsage(None, "chat", 1, 1, times=times)])
        for call in calls:
            finish(lease, call)
    numbered = ToolCall.objects.order_by("ordinal").values_list("ordinal", "step", "call_id")
    assert list(numbered) == [(0, 1, "a1"), (1, 1, "b1"), (2, 2, "a2"), (3, 2, "b2")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fence": 9}, "Another process took this run over."),
        ({"status": Run.Status.COMPLETE}, "It has ended: complete."),
        ({"status": Run.Status.INTERRUPTED, "error_message": "It was stopped."}, "It was stopped."),
    ],
)
def test_a_run_that_was_taken_over_or_has_ended_records_nothing(
    lease: Lease, change: dict[str, object], reason: str
) -> None:
    [one] = record(lease, "one")
    Run.objects.update(**change)
    for attempt in (lambda: record(lease, "two"), lambda: finish(lease, one)):
        with pytest.raises(LeaseLost, match=reason):
            attempt()
    assert ToolCall.objects.get().state == "running"


# --- Plain SQL -------------------------------------------------------------------------------------------


def test_plain_sql_writes_what_django_would_write(alice: User, lease: Lease) -> None:
    def row(**more: object) -> Usage:
        return Usage(
            user=alice,
            run_id=lease.run_id,
            model_name="Ünïcode ' \" %s",
            purpose="chat",
            input_tokens=2**31 - 1,
            output_tokens=0,
            cost=Decimal("0.00000123"),
            exact=True,
            **more,
        )

    plain, djangos = row(), row()
    insert_rows([plain])
    djangos.save()
    shown = [field.attname for field in Usage._meta.concrete_fields if field.name not in ("id", "created_at")]
    rows = Usage.objects.values(*shown)
    assert rows.get(pk=plain.pk) == rows.get(pk=djangos.pk)
    assert abs(Usage.objects.get(pk=plain.pk).created_at - clock.now()).total_seconds() < 3600


def test_plain_sql_changes_only_the_named_columns(lease: Lease, conversation: Conversation) -> None:
    [one, _] = record(lease, "one", "two")
    call = ToolCall.objects.get(call_id=one.call_id)
    call.result, call.finished_at, call.name = [{"text": "Größe", "n": 1.5}], clock.now(), "another"
    update_row(call, "result", "finished_at")
    stored = ToolCall.objects.get(call_id="one")
    assert (stored.result, stored.finished_at, stored.name) == (call.result, call.finished_at, "look_up")
    assert ToolCall.objects.get(call_id="two").result == []
