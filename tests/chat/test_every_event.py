"""Every event type: the page's reducer handles it, and replay returns it as sent, from a row that copies no text."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, get_args

import pytest
from django.conf import settings
from pydantic import TypeAdapter

from agents import events
from agents.events import Fact, Live
from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape, run_error
from chatapp.long_term.models import MemoryEntry
from chatapp.realtime import event_log
from chatapp.realtime.models import Event
from chatapp.runs.actions.runs import plan_fact
from chatapp.runs.actions.tool_calls import call_event
from chatapp.runs.models import Run, ToolCall
from chatapp.runs.shapes import hook_call_text
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db

THREAD = settings.BASE_DIR / "static" / "app" / "js" / "state" / "thread.js"
EVENTS: TypeAdapter[Fact] = TypeAdapter(Fact)
SAID = "The harbour master keeps seven lanterns"


def types_of(union: Any) -> set[str]:
    return {event.model_fields["type"].default for event in get_args(union)}


def test_the_pages_reducer_handles_exactly_the_existing_event_types() -> None:
    _, _, reducer = THREAD.read_text().partition("function applyFact(")
    cases = re.findall(r'case "([a-z_.]+)":', reducer.partition("\n}\n")[0])
    assert len(cases) == len(set(cases))
    assert set(cases) == types_of(Fact) | types_of(Live)


def run_of(conversation: Conversation, question: Message, answer: Message) -> Run:
    plan = [
        {
            "id": "a",
            "title": f"{SAID} in the title",
            "task": f"{SAID} in the task",
            "dependencies": [],
            "round": 1,
            "state": "done",
            "attempts": 1,
            "result": f"{SAID} in the result",
        }
    ]
    return Run.objects.create(
        conversation=conversation,
        user=conversation.user,
        question=question,
        answer=answer,
        status=Run.Status.RUNNING,
        plan=plan,
        error_category="bad_response",
        error_message=f"{SAID} in the error.",
        error_detail=f"{SAID} in the detail.",
        created_at=NOW,
    )


def one_of_each(user: User) -> tuple[Conversation, Run, list[Any]]:
    conversation = new_conversation(user, SAID)
    say(conversation, f"{SAID} in the question.", f"{SAID} in the answer.")
    conversation.refresh_from_db()
    conversation.title = f"{SAID} in the title"
    conversation.save()
    question, answer = Message.objects.filter(conversation=conversation).order_by("position")
    run = run_of(conversation, question, answer)
    call = ToolCall.objects.create(
        run=run,
        step=1,
        ordinal=0,
        call_id="call-1",
        name="look_up",
        arguments=json.dumps({"about": SAID}),
        state=ToolCall.State.DONE,
        is_idempotent=True,
        result=[
            {"type": "tool_result", "call_id": "call-1", "name": "look_up", "text": f"{SAID} in a tool."}
        ],
        requested_at=NOW,
    )
    entry = MemoryEntry.objects.create(
        user=user, day=NOW.date(), text=f"{SAID} in an entry.", created_at=NOW, updated_at=NOW
    )
    where = {"conversation_id": str(conversation.pk), "at": NOW}
    of_run = {**where, "run_id": str(run.pk)}
    asked, answered = message_shape(question), message_shape(answer, run)
    text = message_shape(question)["content"]
    noted = {"entry_id": str(entry.pk), "day": NOW.date().isoformat(), "preview": entry.text}
    error = run_error(run)
    item = events.RecalledItem(
        source={"kind": "message", "message_id": str(question.pk)},
        tokens=9,
        preview=f"user: {text}",
        start=0,
        end=len(text),
    )
    facts = [
        events.MessageCreated(**where, message=asked),
        events.RunStarted(**of_run, message_id=str(answer.pk), model="Main", mode="plan"),
        events.Compact(
            **where,
            state="done",
            compaction_id=str(question.pk),
            message_count=2,
            kept_count=1,
            strategy="summarize",
            tokens_before=9,
            tokens_after=4,
            last_position=1,
            text="Earlier context (2 messages) was summarized by AI.",
        ),
        events.Recall(**of_run, items=[item], total_count=1, total_tokens=9),
        events.Context(**of_run, used_tokens=9, budget_tokens=99, parts=events.ContextParts(), exact=True),
        plan_fact(run, NOW),
        call_event(run, call, NOW),
        events.MessageMoved(
            **of_run, kind="injected", items=[events.MovedMessage(message_id=str(answer.pk), position=1)]
        ),
        events.MessageCompleted(**of_run, message=answered),
        events.Usage(**of_run, purpose="chat", input_tokens=9, output_tokens=1, cached_tokens=0, exact=True),
        events.RunNotice(**of_run, kind="retry", text="The model is asked again."),
        events.HookFired(
            **of_run, hook_id="h", action="module_action", text=hook_call_text(call), call_id="call-1"
        ),
        events.RunFinished(
            **of_run, status="failed", error=events.RunError(**(error or {})), usage=events.UsageTotals()
        ),
        events.MemoryWritten(**where, **noted),
        events.MemoryProposed(**where, **noted),
        events.MessageForgotten(**where, message=asked),
        events.MessageEdited(**where, message=asked),
        events.MessagePinned(**where, message=asked),
        events.ForgetProposed(**where, proposal_id="1", message_id=str(question.pk), item_count=1),
        updated_event(conversation, NOW + timedelta(seconds=1)),
        events.ConversationAttention(**where, unread=True, waiting_calls=1),
    ]
    return conversation, run, facts


def test_replay_returns_each_event_as_sent_and_its_row_copies_no_text(alice: User) -> None:
    conversation, run, facts = one_of_each(alice)
    assert {fact.type for fact in facts} == types_of(Fact), "a new type of event needs one here"
    event_log.append(conversation, *facts, run=run)
    sent = [fact.model_copy(update={"seq": seq}) for seq, fact in enumerate(facts, start=1)]
    for again, fact in zip(event_log.read_after(conversation.pk, 0), sent, strict=True):
        assert again == fact.payload(), fact.type
    assert SAID not in json.dumps(list(Event.objects.values_list("payload", flat=True)))


def test_an_event_stays_valid_after_the_texts_it_refers_to_are_gone(alice: User) -> None:
    conversation, run, facts = one_of_each(alice)
    event_log.append(conversation, *facts, run=run)
    Message.objects.filter(conversation=conversation).update(parts=[])
    ToolCall.objects.update(arguments="{}", result=[])
    Run.objects.update(plan=None, error_message="", error_detail="")
    Conversation.objects.update(title="")
    MemoryEntry.objects.all().delete()
    replayed = event_log.read_after(conversation.pk, 0)
    for event in replayed:
        EVENTS.validate_python(event)
    assert len(replayed) == len(facts)
    assert SAID not in json.dumps(replayed)
