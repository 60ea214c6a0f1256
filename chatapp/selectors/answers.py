"""What a run left behind, for whoever waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Min

from chatapp import row_shapes
from chatapp.models import Event, Run, User
from chatapp.selectors.access import accessible_run
from chatapp.selectors.conversations import shape_message


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """`message` is the answer as a page of messages has it; `compact` the last event of a compaction during the run."""

    status: str
    error: dict[str, str] | None
    message: dict[str, Any]
    usage: dict[str, Any]
    compact: dict[str, Any] | None


def has_ended(user: User, run_id: str) -> bool:
    return accessible_run(user, run_id).status not in Run.ACTIVE


def answer_of_run(user: User, run_id: str) -> RunAnswer:
    run = accessible_run(user, run_id)
    return RunAnswer(
        status=run.status,
        error=row_shapes.run_error(run),
        message=shape_message(run.answer),
        usage=run.usage or {},
        compact=_last_compact_event(run),
    )


def _last_compact_event(run: Run) -> dict[str, Any] | None:
    span = run.events.aggregate(first=Min("seq"), last=Max("seq"))
    if span["first"] is None:
        return None
    during = Event.objects.filter(
        conversation=run.conversation_id, type="compact", seq__gte=span["first"], seq__lte=span["last"]
    )
    payload: dict[str, Any] | None = during.order_by("-seq").values_list("payload", flat=True).first()
    return payload
