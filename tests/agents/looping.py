"""Run the tool loop with a scripted model and fake tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.loop.react import run_react
from agents.requests.context import AssembledContext
from memory.types import Message
from tests.agents.asking import assemble, collect_steps, make_inputs
from tests.agents.scripted_model import ScriptedModel
from tests.agents.tooling import FakeTool, World


def context_with(
    *tools: FakeTool, window: int = 128_000, messages: tuple[Message, ...] = (), **policy: Any
) -> AssembledContext:
    inputs = make_inputs(messages, window=window)
    inputs = replace(
        inputs,
        tools=tuple(tool.spec for tool in tools),
        policy=inputs.policy.model_copy(update=policy),
    )
    return assemble(inputs)


async def run(
    model: ScriptedModel, *tools: FakeTool, world: World | None = None, **options: Any
) -> list[Any]:
    more = options.pop("use", {})
    use = (world or World()).use(*tools, **more)
    steps, error = await collect_steps(run_react(model, context_with(*tools, **options), tool_use=use))
    if error is not None:
        raise error
    return steps


def results_of(model: ScriptedModel, request: int = -1) -> list[str]:
    """Return the tool results in a request, as the model reads them."""
    messages = model.requests[request].messages
    return [result.text for message in messages for result in message.tool_results]
