"""The stored texts that requests repeat, by the keys that `RequestText` names them with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from chatapp.compaction.models import Compaction
from chatapp.conversations.message_values import message_value, reasoning_of, text_of
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import with_stored_pieces
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.recall.models import StoredClaim
from chatapp.runs.models import Run, ToolCall
from memory.types import ImagePart, ToolCallPart
from memory.types import Message as MessageValue

MOST_HOOK_CALLS = 20
PLAN_FIELDS = ("title", "task", "result")


@dataclass(frozen=True, slots=True)
class RequestSources:
    """What the requests of a run are made of, beside what its rows say: loaded messages, the checkpoint, the sources
    of what was recalled, and the answer as far as it is written."""

    messages: Sequence[MessageValue] = ()
    checkpoint_id: str | None = None
    recalled: Sequence[Mapping[str, Any]] = ()
    answer: str = ""
    reasoning: str = ""


def texts_for_requests(run: Run, known: RequestSources, sent: Iterable[MessageValue]) -> dict[str, str]:
    """Return the texts by key that the messages of a request may repeat."""
    texts = {
        f"answer/{run.answer_id}/text": known.answer,
        f"answer/{run.answer_id}/reasoning": known.reasoning,
    }
    for message in known.messages:
        texts.update(_texts_of_message(message))
    loaded = {message.id for message in known.messages}
    messages = {UUID(message.id) for message in sent if message.id and message.id not in loaded}
    messages |= {UUID(source["message_id"]) for source in known.recalled if "message_id" in source}
    entries = {UUID(source["entry_id"]) for source in known.recalled if "entry_id" in source}
    of_recalled = Q(message__in=list(messages)) | Q(entry__in=list(entries))
    newer = StoredClaim.objects.filter(of_recalled, user=run.user_id, superseded_by__isnull=False)
    for message_id, entry_id in newer.values_list("superseded_by__message", "superseded_by__entry"):
        if message_id is not None:
            messages.add(message_id)
        if entry_id is not None:
            entries.add(entry_id)
    texts |= _message_texts(messages) | _entry_texts(entries)
    if known.checkpoint_id is not None:
        texts |= _compaction_texts({UUID(known.checkpoint_id)})
    version = ProfileVersion.objects.filter(profile=run.user_id).order_by("-number").first()
    if version is not None:
        texts[f"profile/{version.pk}"] = version.text
    calls = list(ToolCall.objects.filter(run=run))
    of_hooks = ToolCall.objects.filter(run__conversation=run.conversation_id).exclude(hook_id="")
    calls += of_hooks.order_by("-requested_at", "-pk")[:MOST_HOOK_CALLS]
    return texts | _call_texts(calls) | _plan_texts([run])


def source_texts(keys: Iterable[str]) -> dict[str, str]:
    """Return what the rows that these keys name say now; without those that are gone."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for key in keys:
        kind, row_id, *_ = key.split("/")
        ids[kind].add(UUID(row_id))
    texts = _message_texts(ids["message"]) | _entry_texts(ids["entry"]) | _compaction_texts(ids["compaction"])
    texts |= _answer_texts(ids["answer"])
    for version in ProfileVersion.objects.filter(pk__in=ids["profile"]):
        texts[f"profile/{version.pk}"] = version.text
    texts |= _call_texts(ToolCall.objects.filter(pk__in=ids["call"]))
    return texts | _plan_texts(Run.objects.filter(pk__in=ids["plan"]))


def _texts_of_message(message: MessageValue) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolCallPart):
            yield f"message/{message.id}/{number}", part.arguments
        elif not isinstance(part, ImagePart):
            yield f"message/{message.id}/{number}", part.text


def _message_texts(ids: Iterable[UUID]) -> dict[str, str]:
    rows = Message.objects.filter(pk__in=list(ids))
    return {key: text for row in rows for key, text in _texts_of_message(message_value(row))}


def _answer_texts(ids: Iterable[UUID]) -> dict[str, str]:
    texts = {}
    for row in with_stored_pieces(list(Message.objects.filter(pk__in=list(ids)))):
        texts[f"answer/{row.pk}/text"] = text_of(row.parts)
        texts[f"answer/{row.pk}/reasoning"] = reasoning_of(row.parts)
    return texts


def _entry_texts(ids: Iterable[UUID]) -> dict[str, str]:
    rows = MemoryEntry.objects.filter(pk__in=list(ids)).values_list("pk", "text")
    return {f"entry/{pk}": text for pk, text in rows}


def _compaction_texts(ids: Iterable[UUID]) -> dict[str, str]:
    texts = {}
    for row in Compaction.objects.filter(pk__in=list(ids)):
        texts[f"compaction/{row.pk}/summary"] = row.summary
        texts[f"compaction/{row.pk}/reminder"] = row.reminder
    return texts


def _call_texts(calls: Iterable[ToolCall]) -> dict[str, str]:
    texts = {}
    for call in calls:
        texts[f"call/{call.pk}/arguments"] = call.arguments
        texts[f"call/{call.pk}/result"] = call.result_text
    return texts


def _plan_texts(runs: Iterable[Run]) -> dict[str, str]:
    return {
        f"plan/{run.pk}/{step['id']}/{name}": step[name]
        for run in runs
        for step in run.plan or ()
        for name in PLAN_FIELDS
    }
