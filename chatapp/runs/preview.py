"""Tries out a preset in its own mode: one answer to one question, with the rights of the operator. Stores only the
cost."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from agents.background.summarise import SummaryResult
from agents.errors import ModelError
from agents.loop.react import AgentStep, CallFinished, CallSent, Notice, ToolFinished, run_react
from agents.plan.choosing import RunMode, WantedMode, choose_mode
from agents.plan.prompts import results_message
from agents.plan.run import PlanChanged, PlanDropped, PlanNotice, PlanReady, PlanRequest, run_plan
from agents.plan.scheduler import Steps
from agents.plan.steps import RESERVED, PlanStep
from agents.plan.working import PlanPorts
from agents.ports import CallResult, ToolUse
from agents.prompts import system_prompt
from agents.requests.context import AssembledContext, ContextInputs
from agents.tools.protocol import Right, Tool, ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import Purpose, ReasoningDelta, TextDelta, TokenUsage, ToolSpec
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.budgets.values import Spender
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.context.policies import ContextRules, rules_for
from chatapp.context.tools.registry import tools_of
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.providers.actions import record_background_calls
from chatapp.providers.chat_models import ask_in_thread, chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model, fast_model_of
from chatapp.providers.usage import CallUsage, priced_call
from chatapp.runs.call_timing import OpenCall
from chatapp.runs.plans import plan_models, rules_of_steps, with_findings
from memory.errors import ContextError, PolicyError
from memory.tokens import text_message

TIMEOUT_S = 90.0
REACHED: frozenset[Right] = frozenset({"web", "server"})
"""Rights that do not depend on a conversation, unlike access to memory."""
NOT_RUN = (
    "A preview does not run this tool: it changes something, or needs a conversation or somebody's approval."
)


@dataclass(frozen=True, slots=True)
class NotRun:
    """A tool that is offered to the model unchanged and refuses every call."""

    spec: ToolSpec
    traits: ToolTraits = field(default_factory=ToolTraits)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        raise ToolFailure(NOT_RUN)


@dataclass(slots=True)
class Preview:
    """`problem` says why the answer is missing or incomplete; `plan` has the steps in their last state."""

    model: str
    mode: RunMode = "react"
    plan: Steps = ()
    pieces: list[str] = field(default_factory=list)
    calls: list[CallResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    spent: list[CallUsage] = field(default_factory=list)
    problem: str = ""

    @property
    def answer(self) -> str:
        return "".join(self.pieces)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            sum(call.input_tokens for call in self.spent),
            sum(call.output_tokens for call in self.spent),
            exact=all(call.exact for call in self.spent),
        )


def preview_agent(agent: Agent, question: str, user: User) -> Preview:
    """Answer one question with the preset. Blocks until the answer is complete or the timeout has passed, so never call
    it on the event loop."""
    try:
        asking = _Asking.prepare(agent, question, user)
    except (NotFound, PolicyError, ContextError) as error:
        return Preview("", problem=str(error))
    preview = asking.preview
    try:
        ask_in_thread(asking.answer())
    except TimeoutError:
        preview.problem = f"There was no answer within {asking.limit_s:g} s."
    except (ModelError, ContextError) as error:
        preview.problem = str(error)
    asking.close_calls()
    record_background_calls(user, None, preview.spent)
    return preview


def _may_run(tool: Tool) -> bool:
    """Return whether the tool only reads and needs no conversation and no consent."""
    traits = tool.traits
    return traits.is_idempotent and not traits.needs_consent and traits.rights <= REACHED


@dataclass(frozen=True, slots=True)
class _Asking:
    """One question being answered: the models and their rules, the first request, and the preview to fill."""

    config: ModelConfig
    rules: ContextRules
    fast: ModelConfig
    fast_rules: ContextRules
    context: AssembledContext
    use: ToolUse
    preview: Preview
    spender: Spender
    limit_s: float
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    """Keyed by the role or step of the plan that makes the call; "" is the final answer."""

    @classmethod
    def prepare(cls, agent: Agent, question: str, user: User) -> _Asking:
        """Load what the preview needs. Raise NotFound, PolicyError and ContextError."""
        config = agent.model if agent.model and agent.model.enabled else default_model(user.pk)
        rules, fast = rules_for(config, agent=agent), fast_model_of(config)
        tools = tuple(tool if _may_run(tool) else NotRun(tool.spec) for tool in tools_of(agent))
        return cls(
            config=config,
            rules=rules,
            fast=fast,
            fast_rules=rules_of_steps(fast, config, rules, agent=agent),
            context=_context(agent, config, rules, question, user, tools),
            use=ToolUse(tools, ToolCaller(str(user.pk), "", "")),
            preview=Preview(config.name, choose_mode(cast(WantedMode, agent.mode), question)),
            spender=spender_of(user.pk),
            limit_s=min(TIMEOUT_S, agent.timeout_s or TIMEOUT_S),
        )

    async def answer(self) -> None:
        async with asyncio.timeout(self.limit_s):
            context = await self._carry_out_plan() if self.preview.mode == "plan" else self.context
            # If a plan was carried out, its steps have already used the tools.
            use = self.use if context is self.context else None
            answering = run_react(chat_model_for(self.config, self.spender), context, tool_use=use)
            async with aclosing(answering) as steps:
                async for step in steps:
                    if isinstance(step, TextDelta):
                        self.preview.pieces.append(step.text)
                    self._note(step, "")

    async def _carry_out_plan(self) -> AssembledContext:
        """Carry out the plan and return the context with its findings; unchanged if the answer needs no plan."""
        main, fast = (self.config, self.rules), (self.fast, self.fast_rules)
        ports = PlanPorts(self._note, self._note_summary, self._tool_use)
        models = plan_models(main, fast, self.context, self.spender, ports)
        request = PlanRequest(
            question=self.context.request.messages[-1],
            history=(),
            own_prompt=self.context.inputs.system.text,
            input_tokens=self.context.budget_tokens,
            calibration=self.context.inputs.calibration,
            tools=self.context.inputs.tools,
        )
        async with aclosing(run_plan(models, request)) as items:
            async for item in items:
                match item:
                    case PlanChanged(steps=steps):
                        self.preview.plan = steps
                    case PlanNotice(text=text) | PlanDropped(reason=text):
                        self.preview.notices.append(text)
                    case PlanReady(reports=reports, missing=missing):
                        return with_findings(self.context, results_message(reports, missing))
        return self.context

    async def _tool_use(self, step: PlanStep) -> ToolUse:
        return self.use

    def _note_summary(self, summary: SummaryResult) -> None:
        self.preview.spent += [priced_call(self.fast, usage, "compaction") for usage in summary.usages]

    def _note(self, step: AgentStep, who: str) -> None:
        match step:
            case ToolFinished(result=result):
                self.preview.calls.append(result)
            case Notice(text=text):
                self.preview.notices.append(text)
            case CallSent():
                self._close_call(who)
                # Requests of a preview are not stored, so their numbers do not matter.
                self.open_calls[who] = OpenCall(step, itertools.count(1))
            case TextDelta(text=text) | ReasoningDelta(text=text):
                self.open_calls[who].note(text)
            case CallFinished(usage=usage):
                del self.open_calls[who]
                self.preview.spent.append(priced_call(self._config_of(who), usage, _purpose_of(who)))

    def close_calls(self) -> None:
        """Add the estimated usage of calls that ended early after output had begun, because they have a cost, too."""
        for who in list(self.open_calls):
            self._close_call(who)

    def _close_call(self, who: str) -> None:
        call = self.open_calls.pop(who, None)
        if call is not None and call.written:
            self.preview.spent.append(call.estimate(self._config_of(who), _purpose_of(who)))

    def _config_of(self, who: str) -> ModelConfig:
        return self.config if not who or who in RESERVED else self.fast


def _purpose_of(who: str) -> Purpose:
    return "plan" if who else "chat"


def _context(
    agent: Agent,
    config: ModelConfig,
    rules: ContextRules,
    question: str,
    user: User,
    tools: tuple[Tool, ...],
) -> AssembledContext:
    today = clock.now().astimezone(user.zone).date()
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
