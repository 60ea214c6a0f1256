"""Applies a file that declares models, MCP servers, agents, hooks and groups: all of it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model

from agents.loop.hooks import Hook, write_hooks
from agents.presets.exchange import Preset
from chatapp.agent_presets.actions import (
    AgentValues,
    create_agent,
    save_deployment_hook,
    save_mcp_server,
    update_agent,
)
from chatapp.agent_presets.deployments.differences import (
    Change,
    Difference,
    SectionDifference,
    changed_columns,
    describe_change,
)
from chatapp.agent_presets.deployments.groups import change_group
from chatapp.agent_presets.deployments.schemas import (
    DeclaredAgent,
    DeclaredGroup,
    DeclaredHook,
    DeclaredModel,
    DeclaredServer,
    DeploymentFile,
    DeploymentProblem,
)
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.agent_presets.services import Choices, check_changes, check_preset
from chatapp.operations import encryption
from chatapp.operations.database.audit import record_change
from chatapp.operations.errors import ServiceError
from chatapp.providers.actions import key_differs, save_model_config
from chatapp.providers.models import ModelConfig
from memory.errors import PolicyError
from memory.window.policy import check_written

T = TypeVar("T")

BY_COMMAND = "manage.py apply"
ENDPOINT = ("model_id", "base_url")
NO_COLUMNS = ("api_key", "api_key_env", "fast_model", "default")
OF_THE_ENVIRONMENT = "comes from the environment (LLM_MODEL), which would overwrite a change"
OF_THE_DEMO = "the Demo model has none"


def apply_deployment(
    *,
    file: DeploymentFile,
    choices: Choices,
    is_dry_run: bool = False,
    through: str = BY_COMMAND,
    actor_id: UUID | None = None,
) -> list[SectionDifference]:
    """Store what the file declares and return the differences; a dry run stores nothing and returns the same.

    Raise DeploymentProblem, which names the place in the file.
    """
    with transaction.atomic():
        differences = _Applied(file, choices, through, actor_id).sections()
        if is_dry_run:
            # Roll back only here, so that a dry run finds the same problems.
            transaction.set_rollback(True)
    return differences


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Convert errors of the body to DeploymentProblem, with their place in the file."""
    try:
        yield
    except ServiceError as error:
        if not error.details:
            raise DeploymentProblem(place, error.message.rstrip(".")) from None
        first = error.details[0]
        raise DeploymentProblem(f"{place}.{first['field']}", first["message"].rstrip(".")) from None
    except PolicyError as error:
        raise DeploymentProblem(f"{place}.context_policy.{error.field}", error.problem) from None
    except ValidationError as error:
        field, [problem, *_] = next(iter(error.message_dict.items()))
        raise DeploymentProblem(f"{place}.{field}", problem.rstrip(".")) from None


@dataclass(frozen=True, slots=True)
class _Applied:
    file: DeploymentFile
    choices: Choices
    through: str
    actor_id: UUID | None

    def sections(self) -> list[SectionDifference]:
        """Apply each section after those that it references."""
        declared = self.file.declared
        models = _fast_models_first(declared.models)
        hooks = self._checked_hooks(declared.hooks)
        return [
            _section("models", models, self._model, ModelConfig.objects),
            _section("mcp_servers", enumerate(declared.mcp_servers), self._server, McpServer.objects),
            _section("agents", enumerate(declared.agents), self._agent, Agent.objects.filter(owner=None)),
            _section("hooks", enumerate(hooks), self._hook, DeploymentHook.objects),
            _section("groups", enumerate(declared.groups), self._group, Group.objects),
        ]

    def _hides(self, place: str) -> Callable[[str], bool]:
        return lambda column: self.file.is_filled(f"{place}.{column}")

    # --- models ------------------------------------------------------------------------------------

    def _model(self, declared: DeclaredModel, place: str) -> Difference:
        row = ModelConfig.objects.filter(name=declared.name).first()
        is_new = row is None
        row = row or ModelConfig(name=declared.name)
        given = declared.model_fields_set
        if is_new and "model_id" not in given:
            raise DeploymentProblem(f"{place}.model_id", "is needed for a new model")
        former_url = row.base_url
        wanted = _columns(declared, *NO_COLUMNS)
        if "fast_model" in given:
            wanted["fast_model"] = _model_named(declared.fast_model, f"{place}.fast_model")
        if "default" in given:
            wanted["is_default"] = True
        elif any("default" in each.model_fields_set for each in self.file.declared.models):
            # The declared default replaces this one, whatever their order in the file.
            row.is_default = False
        with _at(place):
            if "context_policy" in wanted:
                check_written("model", wanted["context_policy"])
            changes = changed_columns(row, wanted, is_new=is_new, is_hidden=self._hides(place))
            key = self._key(
                row, declared, changes, place, has_moved=former_url != row.base_url, is_new=is_new
            )
            row.clean_fields(exclude={"fast_model"})
            row.clean()
            if row.is_default and not row.enabled:
                raise DeploymentProblem(f"{place}.enabled", "the default model has to be enabled")
            if changes:
                save_model_config(config=row, api_key=key)
        return self._recorded(row, is_new, changes)

    def _key(
        self,
        row: ModelConfig,
        declared: DeclaredModel,
        changes: list[Change],
        place: str,
        *,
        has_moved: bool,
        is_new: bool,
    ) -> str | None:
        """Return the key to store, or None to keep the stored one. Add a new key to `changes`."""
        differs = bool(declared.api_key) and key_differs(row, declared.api_key)
        fixed = OF_THE_ENVIRONMENT if row.from_environment else OF_THE_DEMO
        if row.from_environment or row.kind == ModelConfig.Kind.DEMO:
            changed = [each.field for each in changes if each.field in ENDPOINT] + ["api_key"] * differs
            if changed:
                raise DeploymentProblem(f"{place}.{changed[0]}", fixed)
        if has_moved and row.api_key_encrypted and not declared.api_key:
            # The stored key could be sent to a stranger there.
            raise DeploymentProblem(f"{place}.api_key", "the address has changed, so its key is required")
        if not differs:
            return None
        changes.append(describe_change("api_key", "", "", is_new=is_new, is_hidden=True))
        return declared.api_key

    # --- MCP servers -------------------------------------------------------------------------------

    def _server(self, declared: DeclaredServer, place: str) -> Difference:
        row = McpServer.objects.filter(name=declared.name).first()
        is_new = row is None
        row = row or McpServer(name=declared.name)
        former_url, given = row.url, declared.model_fields_set
        wanted = _columns(declared, "headers")
        with _at(place):
            changes = changed_columns(row, wanted, is_new=is_new, is_hidden=self._hides(place))
            row.clean_fields()
        if former_url != row.url and row.headers_encrypted and "headers" not in given:
            raise DeploymentProblem(
                f"{place}.headers", "the address has changed, so its headers are required"
            )
        has_headers = "headers" in given and (_headers_of(row) != declared.headers)
        if has_headers:
            changes.append(describe_change("headers", "", "", is_new=is_new, is_hidden=True))
        if changes:
            save_mcp_server(server=row, headers=declared.headers if has_headers else None)
        return self._recorded(row, is_new, changes)

    # --- agents ------------------------------------------------------------------------------------

    def _agent(self, declared: DeclaredAgent, place: str) -> Difference:
        row = Agent.objects.filter(owner=None, name=declared.name).first()
        is_new = row is None
        with _at(place):
            values = self._agent_values(declared, row)
            row = row or Agent(name=declared.name)
            servers = None
            if values.servers is not None:
                before = [] if is_new else [server.name for server in row.mcp_servers.all()]
                after = [server.name for server in values.servers]
                # Their order has no meaning.
                servers = values.servers if sorted(before) != sorted(after) else None
            changes = changed_columns(row, values.columns, is_new=is_new, is_hidden=self._hides(place))
            if servers is not None:
                changes.append(describe_change("mcp_servers", before, after, is_new=is_new, is_hidden=False))
            changed = {change.field for change in changes}
            columns = {name: value for name, value in values.columns.items() if name in changed}
            if is_new:
                row = create_agent(
                    owner=None, values=AgentValues({**columns, "name": declared.name}, servers)
                )
            elif changes:
                row = update_agent(agent=row, change=lambda _: AgentValues(columns, servers))
        return self._recorded(row, is_new, changes)

    def _agent_values(self, declared: DeclaredAgent, row: Agent | None) -> AgentValues:
        """Return the checked values that the file declares, without the name. Raise ServiceError."""
        given = declared.model_fields_set
        own = {name: getattr(declared, name) for name in ("shares_memory", "enabled") if name in given}
        named = given & set(Preset.model_fields)
        content = declared.model_dump(mode="json", include=named)
        if "hooks" in named:
            content["hooks"] = write_hooks(declared.hooks)
        if row is None:
            values = check_preset(Preset.model_validate(content), self.choices, owner_id=None).values
        else:
            values = check_changes(row, content, self.choices)
        columns = {name: value for name, value in values.columns.items() if name in named - {"name"}}
        return AgentValues(columns | own, values.servers if "mcp_servers" in named else None)

    # --- hooks and groups --------------------------------------------------------------------------

    def _checked_hooks(self, declared: Sequence[DeclaredHook]) -> list[tuple[DeclaredHook, dict[str, Any]]]:
        """Return each hook with its stored form. Raise DeploymentProblem."""
        hooks = [Hook.model_validate(each.model_dump(exclude={"enabled"})) for each in declared]
        try:
            checked = check_declared(hooks, is_operator=True, tools=self.choices.hook_tool_names())
        except ServiceError as error:  # its message begins with the place
            place, _, problem = error.message.partition(": ")
            raise DeploymentProblem(place, problem.rstrip(".")) from None
        return list(zip(declared, checked, strict=True))

    def _hook(self, hook: tuple[DeclaredHook, dict[str, Any]], place: str) -> Difference:
        declared, checked = hook
        row = DeploymentHook.objects.filter(hook_id=declared.id).first()
        is_new = row is None
        row = row or DeploymentHook(hook_id=declared.id, declaration={})
        wanted: dict[str, Any] = (
            {"enabled": declared.enabled} if "enabled" in declared.model_fields_set else {}
        )
        before = row.declaration
        changes = changed_columns(row, wanted, is_new=is_new, is_hidden=self._hides(place))
        for field in sorted({*before, *checked}):
            if before.get(field) != checked.get(field) and field != "id":
                shown = before.get(field), checked.get(field)
                hidden = self.file.is_filled(f"{place}.{field}")
                changes.append(describe_change(field, *shown, is_new=is_new, is_hidden=hidden))
        if changes:
            row.declaration = checked
            save_deployment_hook(hook=row)
        return self._recorded(row, is_new, changes)

    def _group(self, declared: DeclaredGroup, place: str) -> Difference:
        row, is_new = Group.objects.get_or_create(name=declared.name)
        return self._recorded(row, is_new, change_group(row, declared, place, is_new=is_new))

    def _recorded(self, row: Model, is_new: bool, changes: Sequence[Change]) -> Difference:
        """Return the difference, and record it in the audit log if anything changed."""
        if is_new or changes:
            done = "added" if is_new else "changed"
            fields = [] if is_new else [each.field for each in changes]
            record_change(row, done, fields=fields, actor_id=self.actor_id, through=self.through)
        return Difference(str(row), is_new, tuple(changes))


def _columns(declared: DeclaredModel | DeclaredServer, *without: str) -> dict[str, Any]:
    """Return the declared values, without the name, which identifies the row."""
    given = declared.model_fields_set - {"name", *without}
    return {name: getattr(declared, name) for name in type(declared).model_fields if name in given}


def _fast_models_first(models: Sequence[DeclaredModel]) -> list[tuple[int, DeclaredModel]]:
    """Return the models with their places in the file, each new one before those that use it as their fast model."""
    new = {model.name for model in models}
    new -= set(ModelConfig.objects.filter(name__in=new).values_list("name", flat=True))
    named = {model.name: {model.fast_model} & new for model in models}
    try:
        order = {name: at for at, name in enumerate(TopologicalSorter(named).static_order())}
    # In a cycle none can be first: applying the first one reports that its fast model does not exist.
    except CycleError:
        order = {}
    return sorted(enumerate(models), key=lambda numbered: order.get(numbered[1].name, 0))


def _model_named(name: str | None, place: str) -> ModelConfig | None:
    if name is None:
        return None
    found = ModelConfig.objects.filter(name=name).first()
    if found is None:
        raise DeploymentProblem(place, f"there is no model {name}")
    return found


def _headers_of(server: McpServer) -> dict[str, str]:
    """Return the stored headers, or an empty dict if they cannot be decrypted any more."""
    try:
        stored = encryption.decrypt(server.headers_encrypted)
    except encryption.SecretUnreadable:
        return {}
    return dict(json.loads(stored)) if stored else {}


def _section(
    name: str, declared: Iterable[tuple[int, T]], apply: Callable[[T, str], Difference], rows: Any
) -> SectionDifference:
    """Apply each declaration with its place in the section, in the given order."""
    things = tuple(apply(each, f"{name}.{at}") for at, each in declared)
    known = {thing.name for thing in things}
    return SectionDifference(name, things, tuple(sorted({str(row) for row in rows.all()} - known)))
