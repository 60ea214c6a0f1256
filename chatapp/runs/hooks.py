"""Runs the hooks that are due at a turn's start and end.

A failing hook is logged and reported, and never fails the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from agents.errors import ModelError
from agents.events import HookFired
from agents.loop.hooks import (
    AUTO_COMPACT_ID,
    CompactContext,
    Hook,
    HookLevel,
    InjectMessage,
    LogMessage,
    ModuleAction,
    Moment,
    TurnState,
    due_hooks,
    fill_placeholders,
)
from chatapp.agent_presets.hook_actions import is_named_action
from chatapp.compaction.compactor import compact_inline, queue_due, queue_next_compaction
from chatapp.compaction.planning import AUTOMATIC, CompactionOptions, is_cooling, is_full
from chatapp.context.assembly import LoadedContext
from chatapp.context.policies import agent_of, declared_hooks, is_set_by_user
from chatapp.operations import clock
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.operations.database.threads import in_database, retry_on_outage
from chatapp.operations.errors import LeaseLost, ReadForgotten, ServiceError
from chatapp.runs.actions.hooks import record_hooks, run_named_action
from chatapp.runs.actions.runs import Lease
from chatapp.runs.hook_conditions import measure_turn
from chatapp.runs.hook_tools import HookRun, call_tool
from chatapp.runs.models import Run
from chatapp.runs.run_context import load_turn_end
from chatapp.runs.shapes import describe_hook_call
from chatapp.runs.tool_ports import DISCARDED
from memory.errors import ContextError, PolicyError
from memory.strategies.registry import strategy_named
from memory.summaries.summary import fence
from memory.tokens import text_message
from memory.types import Message, Role
from memory.window.policy import ContextPolicy

log = logging.getLogger(__name__)
hook_log = logging.getLogger("palimpsest.hooks")

EXPECTED = (ServiceError, ModelError, ContextError, PolicyError)
Reload = Callable[[], LoadedContext]
Note = Mapping[str, str]
"""`{hook_id, role, text}`: a message for one request."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A hook that fired, and what it did. `call_id` names the tool call, if it made one."""

    hook: Hook
    level: HookLevel
    text: str
    call_id: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """Return the fields of its event."""
        return {
            "hook_id": self.hook.id,
            "action": self.hook.action.type,
            "level": self.level,
            "text": self.text,
            "call_id": self.call_id,
        }


@dataclass(slots=True)
class _Turn:
    """One evaluation of the hooks of a moment, and its results."""

    loaded: LoadedContext
    moment: Moment
    run: HookRun
    reload: Reload
    fired: dict[str, datetime] = field(default_factory=dict)
    told: list[Firing] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def policy(self) -> ContextPolicy:
        return self.loaded.rules.policy


def has_no_start_hooks(loaded: LoadedContext) -> bool:
    """Return whether no hook has to run before the model's first call."""
    is_due = any(
        _has_work(hook, loaded.rules.policy) for hook in loaded.rules.hooks if hook.on == "turn_start"
    )
    return not is_due and not loaded.conversation.hook_state.get("waiting")


async def start_turn(
    loaded: LoadedContext, run: HookRun, *, reload: Reload
) -> tuple[LoadedContext, list[Firing]]:
    """Run the hooks of a turn's start. Return the context to continue with, compacted if a hook did so and with their
    notes, and the hooks that fired. `reload` loads the context again after a compaction."""
    waiting: list[Note] = loaded.conversation.hook_state.get("waiting", [])
    # Copy the list: the turn adds its own notes, while `used` must name only the stored ones.
    turn = _Turn(loaded, "turn_start", run, reload, notes=list(waiting))
    await _run_hooks(turn)
    if turn.fired or waiting:
        await retry_on_outage(record_hooks)(conversation=loaded.conversation, fired=turn.fired, used=waiting)
    return turn.loaded.with_notes([_note_message(note) for note in turn.notes]), turn.told


async def end_turn(run_id: UUID) -> None:
    """Run the hooks of a turn's end if the run is complete, then queue the compaction that is due."""
    run = await retry_on_outage(_run_with_agent)(run_id)
    if run is None:
        return
    if run.status == Run.Status.COMPLETE and await retry_on_outage(_has_last_word)(run):
        await _end_turn(run)
    await retry_on_outage(queue_next_compaction)(run.conversation_id, is_early=True)


def _run_with_agent(run_id: UUID) -> Run | None:
    return Run.objects.select_related("conversation__agent").filter(pk=run_id).first()


def _has_last_word(run: Run) -> bool:
    return any(hook.on == "turn_end" for hook in declared_hooks(run.conversation).hooks)


async def _end_turn(run: Run) -> None:
    # Read the count before the context: anything forgotten while that is read then shows as a higher count.
    forgotten_count = await retry_on_outage(read_forgetting_count)(run.conversation.forgetting_keys)
    loaded = await retry_on_outage(load_turn_end)(run.pk)
    if loaded is None:
        return
    lease = Lease(run.pk, run.answer_id, run.fence)
    hook_run = HookRun(lease, has_ended=True, forgotten_count=forgotten_count)
    # No request follows here, so a compacted context need not be reloaded.
    turn = _Turn(loaded, "turn_end", hook_run, lambda: loaded)
    await _run_hooks(turn)
    if turn.fired:
        await retry_on_outage(_record_end)(turn, run)


def _record_end(turn: _Turn, run: Run) -> None:
    """Store that the hooks fired, with their notes. If something was forgotten meanwhile, store no notes and texts,
    because they may quote it."""
    conversation, facts = turn.loaded.conversation, [_fact(turn.loaded, firing) for firing in turn.told]
    try:
        record_hooks(
            conversation=conversation,
            fired=turn.fired,
            added=turn.notes,
            facts=facts,
            run=run,
            forgotten_count=turn.run.forgotten_count,
        )
    except ReadForgotten:
        facts = [fact.model_copy(update={"text": DISCARDED}) for fact in facts]
        record_hooks(conversation=conversation, fired=turn.fired, facts=facts, run=run)


def waiting_notes(loaded: LoadedContext) -> list[Message]:
    """Return the messages that hooks would add to the next request, for the inspector. Runs no hook."""
    state = measure_turn(loaded)
    due = due_hooks(loaded.rules.hooks, "turn_start", state, fired_at=_fired_at(loaded), now=clock.now())
    injected = [_note(hook.id, hook.action, state) for hook in due if isinstance(hook.action, InjectMessage)]
    return [_note_message(note) for note in [*loaded.conversation.hook_state.get("waiting", []), *injected]]


# --- Evaluating -----------------------------------------------------------------------------------------


async def _run_hooks(turn: _Turn) -> None:
    declared = [hook for hook in turn.loaded.rules.hooks if hook.on == turn.moment]
    hooks = [hook for hook in declared if _has_work(hook, turn.policy)]
    if not hooks:
        return
    state = await retry_on_outage(measure_turn)(turn.loaded, turn.run.lease.run_id)
    for hook in hooks:
        before = turn.loaded
        await _run_hook(hook, state, turn)
        # A compaction has changed what the conditions of the next hooks measure.
        if turn.loaded is not before:
            state = await retry_on_outage(measure_turn)(turn.loaded, turn.run.lease.run_id)


def _has_work(hook: Hook, policy: ContextPolicy) -> bool:
    """Return whether the hook has work of its own. The built-in one has none if summaries are written in the
    background: then the view is cut and the compaction queued without it."""
    if hook.id != AUTO_COMPACT_ID:
        return True
    return policy.is_inline or not policy.behaviour.writes_summaries


async def _run_hook(hook: Hook, state: TurnState, turn: _Turn) -> None:
    now = clock.now()
    # In a thread, because assembling a full window takes too long for the event loop.
    if hook.id == AUTO_COMPACT_ID and await retry_on_outage(is_full)(turn.loaded):
        # The view is cut at the trigger, or a little earlier to leave recall its share.
        state = replace(state, pressure=max(state.pressure, 1.0))
    if not due_hooks([hook], turn.moment, state, fired_at=_fired_at(turn.loaded), now=now):
        return
    call_id = None
    try:
        if isinstance(hook.action, ModuleAction) and not is_named_action(hook.action):
            said, call_id = await _use_tool(hook, hook.action, turn)
        else:
            said = await _act(hook, state, turn)
    except LeaseLost:
        # Nothing may be written for this run any more, not even that a hook failed.
        raise
    except EXPECTED as error:
        said = f"It failed: {error}"
    except Exception:
        # A hook never fails the run. Messages of a database or a store belong into the log, not into the chat.
        log.exception("Hook %s of conversation %s failed.", hook.id, turn.loaded.conversation.pk)
        said = "It failed because of an internal error; see the server log."
    if said:
        turn.fired[hook.id] = now
        level = turn.loaded.rules.effective_hooks.levels[hook.id]
        turn.told.append(Firing(hook, level, said, call_id))


async def _act(hook: Hook, state: TurnState, turn: _Turn) -> str:
    """Carry out the hook's action and describe in words what was done. Return "" if there was nothing to do, so that no
    cooldown begins."""
    match hook.action:
        case LogMessage(message=message):
            text = fill_placeholders(message, state)
            hook_log.info("%s %s: %s", turn.loaded.conversation.pk, hook.id, text)
            return text
        case InjectMessage():
            note = _note(hook.id, hook.action, state)
            turn.notes.append(note)
            return note["text"]
        case ModuleAction():
            return await in_database(run_named_action)(
                conversation=turn.loaded.conversation, action=hook.action, now=clock.now()
            )
        case CompactContext():
            return await _compact(hook, hook.action, turn)
        case _:
            assert_never(hook.action)


async def _use_tool(hook: Hook, action: ModuleAction, turn: _Turn) -> tuple[str, str]:
    """Call the hook's tool and return (what was done in words, call id). The result becomes a note for the model: at a
    turn's start for this turn, at its end for the next one."""
    result = await call_tool(hook, action, turn.loaded, turn.run)
    name = result.call.name
    # Fence the result as data, so that no model mistakes it for words of its user.
    text = fence("tool_result", f"{name}:\n{result.part.text}")
    turn.notes.append({"hook_id": hook.id, "role": "user", "text": text})
    return describe_hook_call(name, result.state, result.part.text), result.call.call_id


def _note(hook_id: str, action: InjectMessage, state: TurnState) -> Note:
    return {"hook_id": hook_id, "role": action.role, "text": fill_placeholders(action.message, state)}


def _note_message(note: Note) -> Message:
    """Return the note as a message that starts no turn, whatever its role. A system note is pinned, so that it stays in
    a request that is shortened."""
    role: Role = "system" if note["role"] == "system" else "user"
    return text_message(role, note["text"], kind="injected", pinned=role == "system")


# --- Compacting -----------------------------------------------------------------------------------------


async def _compact(hook: Hook, action: CompactContext, turn: _Turn) -> str:
    options = await retry_on_outage(_options_of)(hook, action, turn.loaded)
    name = options.strategy or turn.policy.strategy
    strategy = strategy_named(name)
    has_answered = turn.moment == "turn_end"
    if options.at_once and await retry_on_outage(is_cooling)(
        turn.loaded, turn.run.lease.run_id, has_answered=has_answered
    ):
        return ""
    is_waited_for = turn.moment == "turn_start" and (turn.policy.is_inline or strategy.waits_for_summary)
    if is_waited_for or not strategy.writes_summaries:
        if not await compact_inline(turn.loaded, options):
            return ""
        turn.loaded = await retry_on_outage(turn.reload)()
    elif await in_database(queue_due)(turn.loaded, options) is None:
        return ""
    return f"Earlier messages leave the context ({name})."


def _options_of(hook: Hook, action: CompactContext, loaded: LoadedContext) -> CompactionOptions:
    if hook.id == AUTO_COMPACT_ID:
        return AUTOMATIC
    longest = action.summary_max_tokens or 0
    level, conversation = loaded.rules.effective_hooks.levels[hook.id], loaded.conversation
    if is_set_by_user(level, conversation, agent_of(conversation)):
        longest = min(longest, loaded.rules.policy.summary_max_tokens)
    return CompactionOptions(
        at_once=True,
        strategy=action.strategy or "",
        keep_recent=action.keep_recent,
        summary_max_tokens=longest,
    )


def _fired_at(loaded: LoadedContext) -> dict[str, datetime]:
    fired = loaded.conversation.hook_state.get("fired", {})
    return {hook_id: datetime.fromisoformat(moment) for hook_id, moment in fired.items()}


def _fact(loaded: LoadedContext, firing: Firing) -> HookFired:
    """Return the event of a hook that fired after the run. It names no run, because `run.finished` is a run's last
    event."""
    return HookFired(conversation_id=str(loaded.conversation.pk), at=clock.now(), **firing.facts)
