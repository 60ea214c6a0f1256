"""Reads runs, in particular those without a living process, their tool calls and their traces."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import Max, Min, QuerySet

from agents.loop.tool_calls import call_key
from agents.plan.scheduler import Steps
from agents.plan.steps import ANALYST, PLANNER
from agents.ports import CallKey
from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.context.models import SentRequest
from chatapp.conversations.schemas.messages import run_error, tool_call_shape
from chatapp.conversations.selectors.messages import full_message
from chatapp.operations.database.access import find_row
from chatapp.operations.workers.leases import is_overdue
from chatapp.realtime.models import Event
from chatapp.realtime.replay import full_events
from chatapp.runs import shapes
from chatapp.runs.models import Run, RunStep, ToolCall

ADOPT_AFTER = timedelta(seconds=3)
# A run that no process takes must end within 60 s after the service is up.
GIVE_UP_AFTER = timedelta(seconds=45)
ARCHIVED_AT_ONCE = 200


def accessible_run(user: User, run_id: str | UUID) -> Run:
    """Return the run. Raise NotFound if it is not this user's."""
    return find_row(Run.objects.filter(conversation__user=user), run_id)


def answer_being_written(conversation_id: UUID) -> str | None:
    """Return the id of the answer that a run of the conversation is writing; None if there is none."""
    answer_id = (
        Run.active().filter(conversation_id=conversation_id).values_list("answer_id", flat=True).first()
    )
    return str(answer_id) if answer_id is not None else None


def orphaned_runs(now: datetime) -> list[UUID]:
    """Return up to 20 queued runs that the process which accepted them did not start, oldest first."""
    late = Run.objects.filter(is_overdue(now, ADOPT_AFTER), status=Run.Status.QUEUED)
    return list(late.order_by("created_at", "pk").values_list("pk", flat=True)[:20])


def dead_runs(now: datetime) -> list[tuple[UUID, int]]:
    """Return (run_id, fence) of up to 200 runs with an expired lease."""
    dead = Run.objects.filter(Run.is_out_of_lease(now), status=Run.Status.RUNNING)
    return list(dead.order_by("lease_expires_at", "pk").values_list("pk", "fence")[:200])


def abandoned_runs(now: datetime) -> list[tuple[UUID, int]]:
    """Return (run_id, fence) of up to 200 runs that have been queued for too long for any process to take them."""
    late = Run.objects.filter(status=Run.Status.QUEUED, created_at__lt=now - GIVE_UP_AFTER)
    return list(late.order_by("created_at", "pk").values_list("pk", "fence")[:200])


def unfinished_runs() -> list[tuple[UUID, int]]:
    """Return (run_id, fence) of all running runs, for a process that knows that it is the only one."""
    return list(Run.objects.filter(status=Run.Status.RUNNING).values_list("pk", "fence"))


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """`message` is the answer as in a page of messages; `compact` the last event of a compaction during the run."""

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
        error=run_error(run),
        message=full_message(run.answer),
        usage=run.usage or {},
        compact=_last_compact_event(run),
    )


def _last_compact_event(run: Run) -> dict[str, Any] | None:
    span = run.events.aggregate(first=Min("seq"), last=Max("seq"))
    if span["first"] is None:
        return None
    # Events of compactions belong to the conversation and name no run. Find them by the run's range of numbers.
    during = Event.objects.filter(
        conversation=run.conversation_id, type="compact", seq__gte=span["first"], seq__lte=span["last"]
    )
    payload: dict[str, Any] | None = during.order_by("-seq").values_list("payload", flat=True).first()
    return payload


def earlier_calls(run: Run) -> Mapping[CallKey, str | None]:
    """Return the tool calls that earlier attempts at the same question may have made and a retry must not repeat."""
    if run.question_id is None:
        return {}
    calls = ToolCall.objects.filter(run__question=run.question_id)
    return _not_to_repeat(calls.exclude(run=run).exclude(run__status=Run.Status.COMPLETE))


def calls_of_step(run_id: UUID, plan_step: str) -> Mapping[CallKey, str | None]:
    """Return the tool calls of a failed step of a plan that a retry of the step must not repeat."""
    return _not_to_repeat(ToolCall.objects.filter(run=run_id, plan_step=plan_step))


def count_step_calls(run_id: UUID) -> int:
    """Return the number of tool calls of a plan's steps, which are not messages of the conversation."""
    return ToolCall.objects.filter(run=run_id).exclude(plan_step="").count()


def _not_to_repeat(calls: QuerySet[ToolCall]) -> Mapping[CallKey, str | None]:
    """Return the results of the calls that have begun and cannot be repeated; None if the outcome is unknown."""
    begun = calls.filter(is_idempotent=False, has_begun=True)
    ended = begun.filter(state__in=[ToolCall.State.DONE, ToolCall.State.INTERRUPTED]).order_by(
        "requested_at", "ordinal", "pk"
    )
    return {
        call_key(call.name, call.arguments): call.result_text if call.state == ToolCall.State.DONE else None
        for call in ended
    }


def trace_of(run: Run) -> dict[str, Any]:
    """Return the model calls of a run with their tool calls, and its hooks; for an active run, those up to now."""
    [trace] = traces_of([run])
    return trace


def traces_of(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the trace of each run, in a constant number of queries."""
    calls, steps, hashes, hooks = (defaultdict[UUID | None, list[Any]](list) for _ in range(4))
    for call in ToolCall.objects.filter(run__in=runs).order_by("ordinal"):
        calls[call.run_id].append(call)
    for step in RunStep.objects.filter(run__in=runs).order_by("n"):
        steps[step.run_id].append(step)
    for run_id, n, sha256 in SentRequest.objects.filter(run__in=runs).values_list("run_id", "n", "sha256"):
        hashes[run_id].append((n, sha256))
    events = list(Event.objects.filter(run__in=runs, type="hook").order_by("seq"))
    for event, fired in zip(events, full_events(events), strict=True):
        hooks[event.run_id].append(fired)
    return [_trace(run, calls[run.pk], steps[run.pk], dict(hashes[run.pk]), hooks[run.pk]) for run in runs]


def _trace(
    run: Run,
    calls: Sequence[ToolCall],
    steps: Sequence[RunStep],
    hashes: Mapping[int, str],
    hooks: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    tools: dict[int, list[dict[str, Any]]] = defaultdict(list)
    of_hooks: dict[str, dict[str, Any]] = {}
    for call in calls:
        shape = tool_call_shape(call)
        if call.hook_id:
            of_hooks[call.call_id] = shape
        else:
            tools[call.step].append(shape)
    places = _places_in_plan(shapes.plan_from_json(run.plan), [step.plan_step for step in steps])
    return {
        "iterations": [
            shapes.step_shape(step)
            | place
            | {"request": _request(step, hashes.get(step.request_n)), "tools": tools[step.n]}
            for step, place in zip(steps, places, strict=True)
        ],
        "hooks": [fired | {"tool": of_hooks.get(fired.get("call_id", ""))} for fired in hooks],
    }


def _places_in_plan(plan: Steps, callers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the maker of each call: the title of its step, and the round of its step, planner or analyst."""
    by_id = {step.id: step for step in plan}
    # A continued plan begins after the steps that an earlier run has done.
    last_round = max(
        (step.round for step in plan if step.state == "done" and step.id not in callers), default=0
    )
    for caller in callers:
        step = by_id.get(caller)
        if step is not None:
            last_round = max(last_round, step.round)
        rounds = {PLANNER: last_round + 1, ANALYST: max(1, last_round)}
        yield {
            "title": step.title if step else None,
            "round": step.round if step else rounds.get(caller),
        }


def _request(step: RunStep, sha256: str | None) -> dict[str, Any] | None:
    return {"sha256": sha256, "n": step.request_n} if sha256 else None


def trace_files(user: User) -> Iterator[ArchiveFile]:
    """Yield a JSON file per conversation for the account archive: its runs in order, as in the API, with their
    traces."""
    rows = Run.objects.filter(conversation__user=user).order_by("conversation_id", "created_at", "pk")
    runs = rows.iterator(chunk_size=ARCHIVED_AT_ONCE)
    # Each file must be read before the next is requested, because the groups of `groupby` share one iterator.
    for conversation_id, some in groupby(runs, key=attrgetter("conversation_id")):
        yield f"traces/{conversation_id}.json", _pieces(some)


def _pieces(runs: Iterable[Run]) -> Iterator[str]:
    left, before = iter(runs), "["
    while page := list(islice(left, ARCHIVED_AT_ONCE)):
        for run, trace in zip(page, traces_of(page), strict=True):
            yield f"{before}\n{json.dumps(shapes.run_shape(run) | trace, ensure_ascii=False, default=str)}"
            before = ","
    yield "\n]\n"
