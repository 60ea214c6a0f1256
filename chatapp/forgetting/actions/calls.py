"""The tool calls of forgotten messages: what was asked for and what came back go with them, wherever they are told.

All of it is called inside the transaction that forgets, with the conversations locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Q, QuerySet

from chatapp.context.models import RequestText
from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.forgetting.selectors.forgotten import said_besides
from chatapp.realtime.models import Event
from chatapp.recall.analysis import vocabulary
from chatapp.runs.models import Run, ToolCall
from memory.hygiene import KnownSentences
from memory.redaction import Forgotten
from memory.sentences import split_sentences

TELLING = ("tool", "hook")
"""The events of calls."""
WORDS = {"arguments": "{}", "preview": "", "text": ""}
"""The fields of those that say something, and what stands there instead."""


def with_belongings(messages: Mapping[UUID, Message]) -> dict[UUID, Message]:
    """These, and what the answers among them asked of tools and got: a run that has just ended wrote it last."""
    answers = [pk for pk, row in messages.items() if row.role == Message.Role.ASSISTANT]
    rows = Message.objects.filter(
        parent__in=answers, run=None, role__in=(Message.Role.ASSISTANT, Message.Role.TOOL)
    )
    return {**messages, **rows.in_bulk()}


def found_alone(
    user_id: UUID,
    conversation_ids: Collection[UUID],
    messages: Mapping[UUID, Message],
    gone: Collection[UUID],
) -> list[str]:
    """The sentences that their tools returned from outside, and that neither their user says besides nor memory had
    before: those are nothing that the tools have told."""
    rows = [row for row in messages.values() if message_values.results_from_outside(row.parts)]
    if not rows:
        return []
    told = [text for row in rows for text in message_values.results_from_outside(row.parts)]
    words, since = Forgotten(told, vocabulary).telling_words, min(row.created_at for row in rows)
    besides = said_besides(user_id, conversation_ids, gone, words, since=since)
    known = KnownSentences(vocabulary, (("", text) for text in besides))
    sentences = (sentence for text in told for sentence in split_sentences(text))
    return [sentence for sentence in sentences if known.find(sentence) is None]


def empty_calls(messages: Collection[Message]) -> tuple[int, int]:
    """Of messages that say all they said still. How many events and how many texts of requests it took."""
    calls = list(_calls_of(messages).values_list("pk", "run__conversation", "call_id"))
    ToolCall.objects.filter(pk__in=[pk for pk, _, _ in calls]).update(arguments="{}", result=[])
    events = requests = 0
    for conversation_id in sorted({home for _, home, _ in calls}):
        call_ids = {call_id for _, home, call_id in calls if home == conversation_id}
        events += _empty_events(conversation_id, call_ids)
        requests += _delete_sent(conversation_id, call_ids)
    return events, requests


def _calls_of(messages: Collection[Message]) -> QuerySet[ToolCall]:
    """Those told in them, and of answers all: a hook's and a plan's calls are in no message."""
    named: dict[UUID, set[str]] = defaultdict(set)
    for row in messages:
        named[row.conversation_id] |= {part["call_id"] for part in row.parts if "call_id" in part}
    of_messages = Q(run__answer__in=[row.pk for row in messages])
    for conversation_id, call_ids in named.items():
        of_messages |= Q(run__conversation=conversation_id, call_id__in=call_ids)
    return ToolCall.objects.filter(of_messages)


def _empty_events(conversation_id: UUID, call_ids: Collection[str]) -> int:
    rows = Event.objects.filter(conversation=conversation_id, type__in=TELLING)
    told = [row for row in rows.iterator() if row.payload.get("call_id") in call_ids]
    for row in told:
        row.payload = {name: WORDS.get(name, value) for name, value in row.payload.items()}
        row.payload.pop("offload_ref", None)
    Event.objects.bulk_update(told, ["payload"], batch_size=200)
    return len(told)


def _delete_sent(conversation_id: UUID, call_ids: Collection[str]) -> int:
    """What was cut, or of a plan's step, requests have in a text of their own; their hash stands for it."""
    rows = RequestText.objects.filter(conversation=conversation_id).values_list("pk", "content")
    gone = [pk for pk, content in rows.iterator() if any(f'"{call_id}"' in content for call_id in call_ids)]
    RequestText.objects.filter(pk__in=gone).delete()
    return len(gone)


def empty_plans(messages: Collection[Message]) -> int:
    """Of answers: the steps of their plans, with what each found. How many events it took."""
    runs = Run.objects.filter(answer__in=[row.pk for row in messages], plan__isnull=False)
    told = list(Event.objects.filter(run__in=runs, type="plan"))
    runs.update(plan=None)
    return len(told)
