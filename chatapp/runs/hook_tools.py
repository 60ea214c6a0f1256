"""Runs the tools that hooks call, with the rights of the conversation's user. Calls are recorded before they run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from agents.loop.hooks import Hook, ModuleAction
from agents.loop.tool_calls import CallChecker
from agents.loop.tool_running import run_calls
from agents.ports import CallKey, CallResult, ToolUse
from agents.tools.protocol import ResultLimit, ToolCaller
from chatapp.agent_presets.hook_actions import name_of, tool_name_of
from chatapp.context.assembly import LoadedContext
from chatapp.operations.errors import InvalidInput
from chatapp.runs.actions.runs import Lease
from chatapp.runs.tool_ports import HookPorts


@dataclass(frozen=True, slots=True)
class HookRun:
    """The run that the hooks belong to. `earlier` are calls that other attempts at the same question may have made."""

    lease: Lease
    earlier: Mapping[CallKey, str | None] = field(default_factory=dict)
    has_ended: bool = False
    """After the turn's end, the user is not asked for approval."""
    forgotten_count: int | None = None
    """Read before the hooks of a run that has ended. None for an active run, which forgetting ends instead."""


async def call_tool(hook: Hook, action: ModuleAction, loaded: LoadedContext, run: HookRun) -> CallResult:
    """Run the hook's tool and return its result. Raise InvalidInput if the conversation has no such tool."""
    name = tool_name_of(action)
    if name not in {tool.spec.name for tool in loaded.tools}:
        raise InvalidInput(f"there is no action and no tool {name_of(action)} here.")
    caller = ToolCaller(str(loaded.user_id), str(loaded.conversation.pk), str(run.lease.run_id))
    ports = HookPorts(run.lease, caller, hook.id, run.forgotten_count)
    consents = None if run.has_ended else ports
    use = ToolUse(loaded.tools, caller, ports, consents, store=ports, earlier=run.earlier)
    # Check it like a model's call: the declared parameters may no longer fit the tool.
    prepared = CallChecker(loaded.tools).prepare([(name, json.dumps(action.params))], step=0)
    calls = [one.call for one in prepared]
    await ports.record_calls(calls)
    policy = loaded.rules.policy
    limit = ResultLimit(policy.result_limit(loaded.rules.budget), policy.message_char_limit)
    async with aclosing(run_calls(prepared, use, limit)) as results:
        async for result in results:
            return result
    raise AssertionError("a call has a result")
