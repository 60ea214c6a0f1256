"""What stands beside messages on the screen: their siblings, what was recalled, remembered or proposed, and what the
run did."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from chatapp.conversations import shapes
from chatapp.conversations.branches import siblings_of
from chatapp.conversations.models import Message
from chatapp.forgetting.models import ForgetProposal
from chatapp.long_term.models import MemoryEntry
from chatapp.realtime.models import Event
from chatapp.runs.models import Run, ToolCall

Asides = dict[UUID, dict[str, Any]]
"""Fields of the message's shape, by message id."""

PREVIEW_CHARS = 200
_OF_RUNS = ("recall", "run.notice", "hook")


def asides_of(rows: Sequence[Message], runs: Mapping[UUID, Run]) -> Asides:
    """`rows`: one page, oldest first. `runs`: by the id of the answer they wrote."""
    asides: Asides = defaultdict(dict)
    if rows:
        answers = {run.pk: answer_id for answer_id, run in runs.items()}
        _add_facts(asides, answers)
        _add_tools(asides, answers)
        _add_remembered(asides, rows)
        _add_proposals(asides, rows)
        _add_siblings(asides, rows)
    return asides


def _add_facts(asides: Asides, answers: Mapping[UUID, UUID]) -> None:
    told = Event.objects.filter(run__in=answers, type__in=_OF_RUNS).order_by("seq")
    for fact in told:
        assert fact.run_id is not None
        answer_id = answers[fact.run_id]
        if fact.type == "recall":
            items = fact.payload["items"]
            asides[answer_id]["recalled"] = items
            asides[answer_id]["recalled_count"] = fact.payload.get("total_count") or len(items)
        else:
            _add_notice(asides, answer_id, fact)


def _add_tools(asides: Asides, answers: Mapping[UUID, UUID]) -> None:
    for call in ToolCall.objects.filter(run__in=answers).order_by("run", "ordinal"):
        asides[answers[call.run_id]].setdefault("tools", []).append(shapes.tool_call_shape(call))


def _add_notice(asides: Asides, answer_id: UUID, fact: Event) -> None:
    kind = "hook" if fact.type == "hook" else fact.payload["kind"]
    asides[answer_id].setdefault("notices", []).append({"kind": kind, "text": fact.payload["text"]})


def _add_remembered(asides: Asides, rows: Sequence[Message]) -> None:
    """Below the message that was the newest when the entry was written."""
    after = Message.objects.filter(conversation=rows[0].conversation_id, position=rows[-1].position + 1)
    until = after.values_list("created_at", flat=True).first()
    entries = MemoryEntry.objects.filter(
        conversation=rows[0].conversation_id, created_at__gte=rows[0].created_at, written_at__isnull=False
    )
    if until is not None:
        entries = entries.filter(created_at__lt=until)
    moments = [row.created_at for row in rows]
    for entry in entries.order_by("created_at", "pk"):
        row = rows[bisect_right(moments, entry.created_at) - 1]
        note = {
            "entry_id": str(entry.pk),
            "day": entry.day.isoformat(),
            "preview": entry.text[:PREVIEW_CHARS],
        }
        asides[row.pk].setdefault("remembered", []).append(note)


def _add_proposals(asides: Asides, rows: Sequence[Message]) -> None:
    """Below the message that wished to forget something, while nobody has answered."""
    open_ones = ForgetProposal.objects.filter(conversation=rows[0].conversation_id, receipt=None)
    asked = open_ones.filter(asked_in__in=[row.pk for row in rows])
    for proposal_id, message_id in asked.order_by("pk").values_list("pk", "asked_in"):
        assert message_id is not None
        asides[message_id]["forget_proposal"] = str(proposal_id)


def _add_siblings(asides: Asides, rows: Sequence[Message]) -> None:
    siblings = siblings_of(rows)
    for row in rows:
        if row.pk in siblings:
            asides[row.pk]["siblings"] = [str(message_id) for message_id in siblings[row.pk]]
