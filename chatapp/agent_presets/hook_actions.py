"""The actions that hooks may name, and the check of declared hooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.loop.hooks import CompactContext, Hook, InjectMessage, ModuleAction, write_hooks
from agents.text import is_storable
from chatapp.conversations.models import Conversation
from chatapp.operations.errors import InvalidInput
from memory.strict_types import first_problem


class _NoParams(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Title(_NoParams):
    title: str = Field(min_length=1, max_length=200)


@dataclass(frozen=True, slots=True)
class _NamedAction:
    """An action on a conversation. `apply` changes its row, unsaved, and returns a sentence about the change."""

    params: type[BaseModel]
    apply: Callable[[Conversation, Any], str]


def _pin(conversation: Conversation, params: _NoParams) -> str:
    conversation.pinned = True
    return "The conversation was pinned."


def _archive(conversation: Conversation, params: _NoParams) -> str:
    conversation.archived = True
    return "The conversation was archived."


def _rename(conversation: Conversation, params: _Title) -> str:
    conversation.title, conversation.title_made_of = params.title, None
    return f"The conversation was named {params.title}."


NAMED_ACTIONS: Mapping[str, _NamedAction] = {
    "conversation.pin": _NamedAction(_NoParams, _pin),
    "conversation.archive": _NamedAction(_NoParams, _archive),
    "conversation.rename": _NamedAction(_Title, _rename),
}


def check_declared(
    hooks: Sequence[Hook], *, is_operator: bool, tools: Collection[str]
) -> list[dict[str, Any]]:
    """Return the hooks in their stored form. Raise InvalidInput.

    Hooks of users may only affect their own conversations: they cannot log or call modules.
    """
    if len({hook.id for hook in hooks}) < len(hooks):
        raise _invalid("two have the same id")
    if is_operator:
        check_hooks(hooks, "hooks", tools)
    elif any(not isinstance(hook.action, CompactContext | InjectMessage) for hook in hooks):
        raise _invalid("yours may only compact_context and inject_message")
    # YAML can contain characters and numbers that the database cannot store.
    if not is_storable([hook.model_dump() for hook in hooks]):
        raise _invalid("there is a character or a number in them that cannot be stored")
    return write_hooks(hooks)


def check_hooks(hooks: Sequence[Hook], source: str, tools: Collection[str] = ()) -> None:
    """Raise InvalidInput for an action that is neither named here nor one of the `tools`, or for invalid parameters.

    A tool checks its parameters when it is called.
    """
    for number, hook in enumerate(hooks):
        if not isinstance(hook.action, ModuleAction) or tool_name_of(hook.action) in tools:
            continue
        where = f"{source}.{number}.action"
        if not is_named_action(hook.action):
            known = ", ".join([*NAMED_ACTIONS, *tools])
            raise InvalidInput(f"{where}: unknown action {name_of(hook.action)}; known actions: {known}.")
        read_params(hook.action, where)


def is_named_action(action: ModuleAction) -> bool:
    return name_of(action) in NAMED_ACTIONS


def tool_name_of(action: ModuleAction) -> str:
    """Return the tool that the action names: `memory.search` is `memory_search`, because tool names have no dots."""
    return name_of(action).replace(".", "_")


def read_params(action: ModuleAction, where: str) -> BaseModel:
    """Return the parameters of a named action. Raise InvalidInput, whose message begins with `where`."""
    named = NAMED_ACTIONS[name_of(action)]
    try:
        return named.params.model_validate(action.params)
    except ValidationError as error:
        field, problem = first_problem(error)
        raise InvalidInput(f"{'.'.join(filter(None, (where, 'params', field)))}: {problem}") from None


def name_of(action: ModuleAction) -> str:
    """Return the full name, from `module` and `action` or from `action` alone."""
    return f"{action.module}.{action.action}" if action.module else action.action


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput.in_field("hooks", problem, f"hooks: {problem}.")
