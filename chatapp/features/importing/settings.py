"""Validates the settings of a conversation in our own export against the new user's choices, and creates the agents and
folders of an account export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from agents.loop.hooks import Hook
from agents.presets.exchange import PresetError, read_preset
from chatapp.accounts.models import User
from chatapp.agent_presets.actions import create_agent
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.selectors import accessible_agent
from chatapp.agent_presets.services import check_preset
from chatapp.context.policies import check_own_policy
from chatapp.context.preset_choices import CHOICES
from chatapp.context.tools.registry import tool_names
from chatapp.conversations.models import Conversation, Folder
from chatapp.conversations.schemas.conversations import ConversationHooks, Mode
from chatapp.features.importing.account import Account
from chatapp.features.importing.actions import store_folder
from chatapp.features.importing.files import uploads_of
from chatapp.features.importing.values import SourceConversation, canonical_id, storable
from chatapp.operations.database.access import find_row
from chatapp.operations.errors import Conflict, InvalidInput, NotFound, ServiceError
from chatapp.providers.selectors import accessible_model
from memory.errors import PolicyError

_HOOKS: TypeAdapter[list[Hook]] = TypeAdapter(ConversationHooks)


def settings_of(user: User, source: SourceConversation, account: Account | None) -> dict[str, Any]:
    """Return columns of the conversation. Settings that are not available here keep their default, and are counted."""
    raw = source.settings
    # Never stored: the policy is validated against this row's model and agent.
    row = Conversation(user=user)
    columns: dict[str, Any] = {"title": source.title, "temporary": raw.get("temporary") is True}
    if raw.get("memory") in Conversation.Memory:
        columns["memory"] = raw["memory"]
    if raw.get("mode") in get_args(Mode):
        columns["mode"] = raw["mode"]
    checks: dict[str, Callable[[Any], Any]] = {
        "model": lambda name: accessible_model(user.pk, storable(str(name))),
        "agent": lambda name: accessible_agent(user, storable(str(name))),
        "folder": lambda folder_id: _folder(user, str(folder_id), account),
        "context_policy": lambda policy: _policy(row, policy),
        "hooks": lambda hooks: check_declared(
            _HOOKS.validate_python(hooks), is_operator=False, tools=tool_names()
        ),
    }
    for name, check in checks.items():
        if not raw.get(name):
            continue
        try:
            columns[name] = check(raw[name])
        except (ServiceError, PolicyError, ValidationError):
            source.left_out[f"settings not available here ({name.replace('_', ' ')})"] += 1
            continue
        if name in ("model", "agent"):  # policies are validated against them
            setattr(row, name, columns[name])
    return columns


def _policy(row: Conversation, policy: Any) -> Mapping[str, Any]:
    if not isinstance(policy, dict):
        raise PolicyError("context_policy", "conversation", "it is not an object")
    check_own_policy(row, policy)
    return policy


def _folder(user: User, folder_id: str, account: Account | None) -> Folder:
    """Return the user's folder: by name if the archive describes it, else by id. Raise NotFound."""
    named = account.folders.get(canonical_id(folder_id)) if account is not None else None
    own = Folder.objects.filter(user=user)
    found = own.filter(name=named.name).first() if named is not None else find_row(own, folder_id)
    if found is None:  # the user had too many folders
        raise NotFound
    return found


def take_folders(user: User, account: Account) -> tuple[Counter[str], Counter[str]]:
    """Create the archive's folders, even empty ones. Return (what was left out of new folders, folders that could not
    be created), counted. A folder whose name the user already has stays as it is."""
    of_new, not_made = Counter[str](), Counter[str]()
    known = set(Folder.objects.filter(user=user).values_list("name", flat=True))
    for each in account.folders.values():
        if each.name in known:
            continue
        agent: Agent | None = None
        try:
            agent = accessible_agent(user, each.agent) if each.agent else None
        except NotFound:
            of_new["folder agents not available here"] += 1
        named = {file.id: file.name for file in each.files}
        files = uploads_of(user, named, account)
        try:
            store_folder(
                user=user,
                files=files.values(),
                name=each.name,
                instructions=each.instructions,
                agent=agent,
                now=each.created_at,
            )
        except Conflict:
            not_made["folders over your limit"] += 1
        else:
            of_new["images and other files"] += len(named) - len(files)
    return of_new, not_made


def take_presets(user: User, texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Create an agent from each YAML text. Return (what was left out of new agents, agents not created), counted.

    An agent whose name the user already has stays as it is: each turn of an import reads the file from the beginning.
    """
    of_new, not_made = Counter[str](), Counter[str]()
    known = set(Agent.objects.filter(owner=user).values_list("name", flat=True))
    for text in texts:
        try:
            checked = check_preset(read_preset(text), CHOICES, owner_id=user.pk, is_import=True)
            name = str(checked.values.columns["name"])
            if name in known:
                continue
            create_agent(owner=user, values=checked.values)
        except (PresetError, InvalidInput, NotFound):  # NotFound: the user may use no model
            not_made["agents that cannot be read"] += 1
        except Conflict:
            not_made["agents over your limit"] += 1
        else:
            known.add(name)
            if checked.notes:
                of_new["agent settings not available here"] += len(checked.notes)
    return of_new, not_made
