"""Stores the effects of hooks: named actions, when each hook fired, and their tool calls, recorded before they run.
These calls are not messages of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from agents.events import Fact
from agents.loop.hooks import ModuleAction
from agents.ports import CallResult, RequestedCall
from chatapp.agent_presets.hook_actions import NAMED_ACTIONS, name_of, read_params
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.operations.database.forgetting_counts import check_forgetting_count
from chatapp.realtime import event_log
from chatapp.runs.actions.runs import Lease, check_nothing_forgotten, lease_lost, lock_run
from chatapp.runs.actions.tool_calls import (
    call_event,
    call_row,
    interrupt_call,
    is_waiting,
    save_results,
    waiting_event,
    write_result,
)
from chatapp.runs.models import Run, ToolCall


def run_named_action(*, conversation: Conversation, action: ModuleAction, now: datetime) -> str:
    """Change the conversation as the action says, and return in words what was done. Raise InvalidInput."""
    params = read_params(action, "action")
    with transaction.atomic():
        row = Conversation.objects.select_for_update().get(pk=conversation.pk)
        done = NAMED_ACTIONS[name_of(action)].apply(row, params)
        row.save(update_fields=["pinned", "archived", "title", "title_made_of"])
        event_log.append(row, updated_event(row, now))
    return done


def record_hooks(
    *,
    conversation: Conversation,
    fired: Mapping[str, datetime],
    used: Sequence[Mapping[str, str]] = (),
    added: Sequence[Mapping[str, str]] = (),
    facts: Sequence[Fact] = (),
    run: Run | None = None,
    forgotten_count: int | None = None,
) -> None:
    """Store when hooks fired, remove the waiting notes that were `used` and store those `added` for the next turn.

    Used notes are listed because a turn may begin before the hooks of the previous turn are done. `run` is the run of
    the facts. With `forgotten_count`, raise ReadForgotten if something was forgotten since the hooks began.
    """
    with transaction.atomic():
        if forgotten_count is not None:
            check_forgetting_count(conversation.forgetting_keys, forgotten_count)
        row = Conversation.objects.select_for_update().filter(pk=conversation.pk).first()
        if row is None:
            return
        times = {hook_id: moment.isoformat() for hook_id, moment in fired.items()}
        waiting = [note for note in row.hook_state.get("waiting", []) if note not in used]
        # Merge into the current row, because hooks of another turn may have written since. A retry adds nothing.
        row.hook_state = {
            "fired": {**row.hook_state.get("fired", {}), **times},
            "waiting": [*waiting, *(dict(note) for note in added if note not in waiting)],
        }
        row.save(update_fields=["hook_state"])
        if facts:
            event_log.append(row, *facts, run=run)


# --- Tool calls ------------------------------------------------------------------------------------------


def record_hook_call(
    *,
    lease: Lease,
    hook_id: str,
    requested: RequestedCall,
    now: datetime,
    forgotten_count: int | None = None,
) -> None:
    """Record a call before it runs. Recording it again changes nothing.

    Raise LeaseLost; ReadForgotten if something was forgotten since the hooks of this moment began.
    """
    with transaction.atomic():
        conversation, run = _lock(lease, forgotten_count)
        if ToolCall.objects.filter(run=run, call_id=requested.call_id).exists():
            return
        ordinal = ToolCall.objects.filter(run=run).count()
        row = call_row(run, requested, now, ordinal=ordinal, hook_id=hook_id)
        row.save(force_insert=True)
        waits = [waiting_event(conversation, now)] if is_waiting(row) else []
        event_log.append(conversation, call_event(run, row, now), *waits, run=run)


def finish_hook_call(
    *, lease: Lease, result: CallResult, now: datetime, forgotten_count: int | None = None
) -> None:
    """Store the result of a hook's call. Raise LeaseLost, ReadForgotten."""
    with transaction.atomic():
        conversation, run = _lock(lease, forgotten_count)
        row = ToolCall.objects.get(run=run, call_id=result.call.call_id)
        write_result(row, result.state, result.part, now, is_cut=result.is_cut)
        save_results([row])
        event_log.append(conversation, call_event(run, row, now), run=run)


def _lock(lease: Lease, forgotten_count: int | None) -> tuple[Conversation, Run]:
    """Lock and return the conversation and the run, which may have ended: hooks of a turn's end run after it.

    Raise LeaseLost if the conversation was deleted, or if another process ended or took over the run. Raise
    ReadForgotten if the count differs from `forgotten_count`: forgetting cannot end a run that has ended.
    """
    check_nothing_forgotten(lease.run_id, forgotten_count)
    found = lock_run(lease.run_id)
    if found is None or found[1].fence != lease.fence:
        raise lease_lost(found)
    return found


def close_abandoned_calls(*, now: datetime, timeout_s: Callable[[str], float]) -> None:
    """Interrupt open calls of processes that died after a run's end. Calls before it are closed when the run ends.

    `timeout_s` returns how long a call of the named tool may be open.
    """
    rows = ToolCall.objects.filter(state__in=ToolCall.OPEN).exclude(run__status__in=Run.ACTIVE)
    # Close each in its own transaction, so that only one conversation is locked at a time.
    for row in list(rows.only("run_id", "name", "requested_at")):
        if (now - row.requested_at).total_seconds() > timeout_s(row.name):
            _close(row.run_id, row.pk, now)


def _close(run_id: UUID, pk: UUID, now: datetime) -> None:
    with transaction.atomic():
        found = lock_run(run_id)
        row = ToolCall.objects.filter(pk=pk, state__in=ToolCall.OPEN).first() if found else None
        if found is None or row is None:
            return
        conversation, run = found
        interrupt_call(row, now)
        save_results([row])
        event_log.append(conversation, call_event(run, row, now), run=run)
