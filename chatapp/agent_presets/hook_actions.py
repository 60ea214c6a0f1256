"""What hooks may do to a conversation by name, and what they leave behind in its row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.events import Fact
from agents.hooks import CompactContext, Hook, InjectMessage, ModuleAction, write_hooks
from agents.text import is_storable
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.operations.errors import InvalidInput
from chatapp.operations.fences import check_fences
from chatapp.realtime import event_log
from chatapp.runs.models import Run


class _NoParams(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Title(_NoParams):
    title: str = Field(min_length=1, max_length=200)


@dataclass(frozen=True, slots=True)
class _NamedAction:
    """`apply` changes the conversation's row, which is locked, and says in words what it did."""

    params: type[BaseModel]
    apply: Callable[[Conversation, Any], str]


def _pin(conversation: Conversation, params: _NoParams) -> str:
    conversation.pinned = True
    return "The conversation was pinned."


def _archive(conversation: Conversation, params: _NoParams) -> str:
    conversation.archived = True
    return "The conversation was archived."


def _rename(conversation: Conversation, params: _Title) -> str:
    conversation.title = params.title
    return f"The conversation was named {params.title}."


NAMED_ACTIONS: Mapping[str, _NamedAction] = {
    "conversation.pin": _NamedAction(_NoParams, _pin),
    "conversation.archive": _NamedAction(_NoParams, _archive),
    "conversation.rename": _NamedAction(_Title, _rename),
}


def check_declared(
    hooks: Sequence[Hook], *, is_operator: bool, tools: Collection[str]
) -> list[dict[str, Any]]:
    """As they are stored. What a user's hook does is seen in that user's conversations alone: no log of the operator's,
    no module. Raises InvalidInput."""
    if len({hook.id for hook in hooks}) < len(hooks):
        raise _invalid("two have the same id")
    if is_operator:
        check_hooks(hooks, "hooks", tools)
    elif any(not isinstance(hook.action, CompactContext | InjectMessage) for hook in hooks):
        raise _invalid("yours may only compact_context and inject_message")
    if not is_storable([hook.model_dump() for hook in hooks]):
        raise _invalid("there is a character or a number in them that cannot be stored")
    return write_hooks(hooks)


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput(f"hooks: {problem}.", details=[{"field": "hooks", "message": problem}])


def check_hooks(hooks: Sequence[Hook], place: str, tools: Collection[str] = ()) -> None:
    """Raises InvalidInput for what is neither an action nor one of the `tools`, or with parameters it does not take.

    A tool checks its own when it is called.
    """
    for number, hook in enumerate(hooks):
        if not isinstance(hook.action, ModuleAction) or tool_name_of(hook.action) in tools:
            continue
        where = f"{place}.{number}.action"
        if not is_named_action(hook.action):
            known = ", ".join([*NAMED_ACTIONS, *tools])
            raise InvalidInput(f"{where}: there is no action {name_of(hook.action)}; there are {known}.")
        _read_params(hook.action, where)


def is_named_action(action: ModuleAction) -> bool:
    return name_of(action) in NAMED_ACTIONS


def tool_name_of(action: ModuleAction) -> str:
    """Tools have no dots in their names: `memory.search` is `memory_search`."""
    return name_of(action).replace(".", "_")


def _read_params(action: ModuleAction, place: str) -> BaseModel:
    named = NAMED_ACTIONS[name_of(action)]
    try:
        return named.params.model_validate(action.params)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(["params", *(str(step) for step in first["loc"])])
        raise InvalidInput(f"{place}.{where}: {first['msg']}") from None


def name_of(action: ModuleAction) -> str:
    """`module` and `action`, or both in `action`."""
    return f"{action.module}.{action.action}" if action.module else action.action


def run_named_action(*, conversation: Conversation, action: ModuleAction, now: datetime) -> str:
    """What was done, in words. Raises InvalidInput."""
    params = _read_params(action, "action")
    with transaction.atomic():
        row = Conversation.objects.select_for_update().get(pk=conversation.pk)
        said = NAMED_ACTIONS[name_of(action)].apply(row, params)
        row.save(update_fields=["pinned", "archived", "title"])
        event_log.append(row, updated_event(row, now))
    return said


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
    """When these hooks fired, and of the notes that wait for the next turn those it `used`, and those that are `added`:
    a turn may begin before the hooks of the one before it are done. `run` is the one whose turn the facts are about.

    Raises ReadForgotten where more was forgotten than when the hooks began, with a `forgotten_count`.
    """
    with transaction.atomic():
        if forgotten_count is not None:
            check_fences(conversation.fence_keys, forgotten_count)
        row = Conversation.objects.select_for_update().filter(pk=conversation.pk).first()
        if row is None:
            return
        times = {hook_id: moment.isoformat() for hook_id, moment in fired.items()}
        waiting = [note for note in row.hook_state.get("waiting", []) if note not in used]
        row.hook_state = {
            "fired": {**row.hook_state.get("fired", {}), **times},
            "waiting": [*waiting, *(dict(note) for note in added if note not in waiting)],
        }
        row.save(update_fields=["hook_state"])
        if facts:
            event_log.append(row, *facts, run=run)
