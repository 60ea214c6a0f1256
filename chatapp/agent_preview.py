"""A preset tried out: its model is asked once, with its prompt and its tools. Nothing is called, nothing is stored but
what it cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from agents.errors import ModelError
from agents.prompts import system_prompt
from agents.tool_calls import CallCollector
from agents.types import Finished, ModelRequest, TextDelta, TokenUsage, ToolCallDelta
from chatapp import clock
from chatapp.actions.usage import priced_call, record_background_calls
from chatapp.chat_models import ask_in_thread, chat_model_for
from chatapp.errors import NotFound
from chatapp.models import Agent, ModelConfig, User
from chatapp.policies import rules_for
from chatapp.selectors.model_configs import default_model
from chatapp.toolbox import tools_of
from memory.errors import PolicyError
from memory.tokens import text_message

TIMEOUT_S = 90.0
MAX_OUTPUT_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Preview:
    """`calls` are the tools it asked for, each with its arguments as the model wrote them."""

    model: str
    answer: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    problem: str = ""


def preview_agent(agent: Agent, question: str, user: User) -> Preview:
    """Blocks until the model answered or its time-out has passed. Not for the event loop."""
    try:
        config = agent.model if agent.model and agent.model.enabled else default_model()
        request = _request(agent, config, question, user)
    except (NotFound, PolicyError) as error:
        return Preview("", problem=str(error))
    try:
        preview = ask_in_thread(_ask(config, request))
    except TimeoutError:
        return Preview(config.name, problem=f"The model did not answer within {TIMEOUT_S:g} s.")
    except ModelError as error:
        return Preview(config.name, problem=error.message)
    record_background_calls(user, None, [priced_call(config, preview.usage, "chat")])
    return preview


def _request(agent: Agent, config: ModelConfig, question: str, user: User) -> ModelRequest:
    tools = tuple(tool.spec for tool in tools_of(agent))
    today = clock.now().astimezone(ZoneInfo(user.time_zone)).date()
    prompt = system_prompt(agent.system_prompt or config.system_prompt, today, has_tools=bool(tools))
    budget = rules_for(config, agent=agent).budget
    return ModelRequest(
        messages=(text_message("system", prompt), text_message("user", question)),
        max_output_tokens=min(budget.max_output_tokens, MAX_OUTPUT_TOKENS),
        tools=tools,
        temperature=agent.temperature,
    )


async def _ask(config: ModelConfig, request: ModelRequest) -> Preview:
    pieces: list[str] = []
    calls = CallCollector()
    usage = TokenUsage()
    async with asyncio.timeout(TIMEOUT_S), aclosing(chat_model_for(config).stream(request)) as stream:
        async for item in stream:
            match item:
                case TextDelta(text=text):
                    pieces.append(text)
                case ToolCallDelta():
                    calls.add(item)
                case Finished():
                    usage = item.usage
    return Preview(config.name, "".join(pieces), tuple(calls.calls), usage)
