"""The stored texts that requests repeat, under the keys that `RequestText` uses for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatapp.compaction.models import Compaction
from chatapp.conversations.message_values import reasoning_of, text_of
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import messages_by_id, with_stored_pieces
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.runs.models import Run, ToolCall
from memory.types import ImagePart, ToolCallPart
from memory.types import Message as MessageValue

MOST_HOOK_CALLS = 20
PLAN_FIELDS = ("title", "task", "result")


@dataclass(frozen=True, slots=True)
class RequestSources:
    """The contents of a run's requests: loaded messages, the checkpoint, the sources of recalled texts and of newer
    statements noted on them, and the answer so far.

    `profile_of` is the user whose profile is shown. `has_calls`: results of tools or hooks, or a plan, may be included.
    """

    messages: Sequence[MessageValue] = ()
    checkpoint_id: str | None = None
    recalled: Sequence[Mapping[str, Any]] = ()
    newer: Collection[UUID] = ()
    profile_of: UUID | None = None
    has_calls: bool = True
    answer: str = ""
    reasoning: str = ""


def texts_for_requests(
    run_id: UUID, answer_id: UUID, known: RequestSources, sent: Iterable[MessageValue]
) -> dict[str, str]:
    """Return the texts, by key, that the messages of a request may repeat. Raise Run.DoesNotExist."""
    texts = {
        f"answer/{answer_id}/text": known.answer,
        f"answer/{answer_id}/reasoning": known.reasoning,
    }
    for message in known.messages:
        texts.update(_texts_of_message(message))
    loaded = {message.id for message in known.messages}
    messages = {UUID(message.id) for message in sent if message.id and message.id not in loaded}
    messages |= {UUID(source["message_id"]) for source in known.recalled if "message_id" in source}
    entries = {UUID(source["entry_id"]) for source in known.recalled if "entry_id" in source}
    # A newer statement is a message or an entry; its id does not say which.
    texts |= _message_texts(messages.union(known.newer)) | _entry_texts(entries.union(known.newer))
    if known.checkpoint_id is not None:
        texts |= _compaction_texts({UUID(known.checkpoint_id)})
    if known.profile_of is not None:
        versions = ProfileVersion.objects.filter(profile=known.profile_of).order_by("-number")
        for key, text in versions.values_list("pk", "text")[:1]:
            texts[f"profile/{key}"] = text
    return texts | _texts_of_run(run_id) if known.has_calls else texts


def _texts_of_run(run_id: UUID) -> dict[str, str]:
    """Return the calls of the run's tools and of the newest hooks of its conversation, and its plan."""
    run = Run.objects.get(pk=run_id)
    calls = list(ToolCall.objects.filter(run=run))
    of_hooks = ToolCall.objects.filter(run__conversation=run.conversation_id).exclude(hook_id="")
    calls += of_hooks.order_by("-requested_at", "-pk")[:MOST_HOOK_CALLS]
    return _call_texts(calls) | _plan_texts([run])


def source_texts(keys: Iterable[str]) -> dict[str, str]:
    """Return the current texts of the rows with these keys, without missing rows."""
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


def _message_texts(ids: Collection[UUID]) -> dict[str, str]:
    rows = messages_by_id(ids) if ids else []
    return {key: text for message in rows for key, text in _texts_of_message(message)}


def _answer_texts(ids: Iterable[UUID]) -> dict[str, str]:
    texts = {}
    for row in with_stored_pieces(list(Message.objects.filter(pk__in=list(ids)))):
        texts[f"answer/{row.pk}/text"] = text_of(row.parts)
        texts[f"answer/{row.pk}/reasoning"] = reasoning_of(row.parts)
    return texts


def _entry_texts(ids: Collection[UUID]) -> dict[str, str]:
    if not ids:
        return {}
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
