"""A preset tried out: one answer to one question, as the operator who asks. Nothing is stored but what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from agents.context import AssembledContext, ContextInputs
from agents.errors import ModelError
from agents.ports import CallResult, ToolUse
from agents.prompts import system_prompt
from agents.react import AgentStep, CallFinished, Notice, ToolFinished, run_react
from agents.tools.protocol import Right, Tool, ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import TextDelta, TokenUsage, ToolSpec
from chatapp import clock
from chatapp.actions.usage import priced_call, record_background_calls
from chatapp.chat_models import ask_in_thread, chat_model_for
from chatapp.errors import NotFound
from chatapp.models import Agent, ModelConfig, User
from chatapp.policies import rules_for
from chatapp.selectors.model_configs import default_model
from chatapp.toolbox import tools_of
from memory.errors import ContextError, PolicyError
from memory.tokens import text_message

TIMEOUT_S = 90.0
REACHED: frozenset[Right] = frozenset({"web", "server"})
"""What there is without a conversation: what its user knows depends on which one it is."""
NOT_RUN = (
    "A preview does not run this tool: it changes something, or needs a conversation or somebody's approval."
)


@dataclass(frozen=True, slots=True)
class NotRun:
    """Offered as it is, and refused when it is called."""

    spec: ToolSpec
    traits: ToolTraits = field(default_factory=ToolTraits)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        raise ToolFailure(NOT_RUN)


@dataclass(slots=True)
class Preview:
    """`problem` is why there is no answer, or not all of it."""

    model: str
    pieces: list[str] = field(default_factory=list)
    calls: list[CallResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    usages: list[TokenUsage] = field(default_factory=list)
    problem: str = ""

    @property
    def answer(self) -> str:
        return "".join(self.pieces)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            sum(usage.input_tokens for usage in self.usages),
            sum(usage.output_tokens for usage in self.usages),
            exact=all(usage.exact for usage in self.usages),
        )

    def note(self, step: AgentStep) -> None:
        match step:
            case TextDelta(text=text):
                self.pieces.append(text)
            case ToolFinished(result=result):
                self.calls.append(result)
            case Notice(text=text):
                self.notices.append(text)
            case CallFinished(usage=usage):
                self.usages.append(usage)


def preview_agent(agent: Agent, question: str, user: User) -> Preview:
    """Blocks until it is answered or the time-out has passed. Not for the event loop."""
    try:
        config = agent.model if agent.model and agent.model.enabled else default_model()
        tools = tuple(tool if _may_run(tool) else NotRun(tool.spec) for tool in tools_of(agent))
        context = _context(agent, config, question, user, tools)
    except (NotFound, PolicyError, ContextError) as error:
        return Preview("", problem=str(error))
    preview = Preview(config.name)
    try:
        ask_in_thread(_answer(config, context, ToolUse(tools, ToolCaller(str(user.pk), "", "")), preview))
    except TimeoutError:
        preview.problem = f"There was no answer within {TIMEOUT_S:g} s."
    except (ModelError, ContextError) as error:
        preview.problem = str(error)
    record_background_calls(user, None, [priced_call(config, usage, "chat") for usage in preview.usages])
    return preview


def _may_run(tool: Tool) -> bool:
    """Whether it only reads, and nothing that belongs to a conversation."""
    traits = tool.traits
    return traits.is_idempotent and not traits.needs_consent and traits.rights <= REACHED


def _context(
    agent: Agent, config: ModelConfig, question: str, user: User, tools: tuple[Tool, ...]
) -> AssembledContext:
    rules = rules_for(config, agent=agent)
    today = clock.now().astimezone(ZoneInfo(user.time_zone)).date()
    prompt = system_prompt(agent.system_prompt or config.system_prompt, today, has_tools=bool(tools))
    inputs = ContextInputs(
        system=text_message("system", prompt),
        checkpoint=None,
        messages=(),
        question=text_message("user", question, kind="question", pinned=True),
        policy=rules.policy,
        budget=rules.budget,
        calibration=rules.calibration,
        tools=tuple(tool.spec for tool in tools),
        temperature=agent.temperature,
    )
    return AssembledContext(inputs, inputs.fit())


async def _answer(config: ModelConfig, context: AssembledContext, use: ToolUse, preview: Preview) -> None:
    answering = run_react(chat_model_for(config), context, tool_use=use)
    async with asyncio.timeout(TIMEOUT_S), aclosing(answering) as steps:
        async for step in steps:
            preview.note(step)
