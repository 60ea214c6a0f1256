"""Run planner, analyst and steps as separate loops: the first two on the main model, steps on the fast one.

Each stays within its model's budget and follows the rules of an ordinary answer for retries and overflows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agents.background.summarise import Summariser, SummaryResult
from agents.errors import ModelError
from agents.loop.react import AgentStep, CallFinished, run_react
from agents.plan.prompts import ANALYST_MARK, dependency_messages, step_prompt
from agents.plan.scheduler import StepFailed
from agents.plan.steps import ANALYST, DEPENDENCY_CHARS, PLANNER, PlanStep
from agents.ports import ToolUse
from agents.requests.context import AssembledContext, ContextInputs
from agents.text import storable_text
from agents.types import ChatModel, TextDelta
from memory.budget import TokenBudget
from memory.errors import ContextError
from memory.summaries.summary_prompts import Hint
from memory.tokens import Calibration, text_message, total_tokens
from memory.truncate import cut_middle
from memory.types import Message
from memory.window.policy import ContextPolicy

EMPTY = "The model answered with nothing."
EXTRACT_LEAD = "[An extract: the sentences that carry facts, word for word.]"


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model with its own policy, budget and calibration."""

    model: ChatModel
    policy: ContextPolicy
    budget: TokenBudget
    calibration: Calibration = field(default_factory=Calibration)
    temperature: float | None = None

    def assemble(
        self,
        system: str,
        question: Message,
        messages: Sequence[Message] = (),
        tool_use: ToolUse | None = None,
    ) -> AssembledContext:
        """Return the context of a call. Raise memory.errors.ContextError if it cannot fit."""
        inputs = ContextInputs(
            system=text_message("system", system),
            checkpoint=None,
            messages=messages,
            question=question,
            policy=self.policy,
            budget=self.budget,
            calibration=self.calibration,
            tools=tuple(tool.spec for tool in tool_use.tools) if tool_use else (),
            temperature=self.temperature,
        )
        return AssembledContext(inputs, inputs.fit())


@dataclass(frozen=True, slots=True)
class PlanPorts:
    """What a plan needs from outside.

    `on_step` is called with each step of a loop and its owner (a plan step's id, `planner` or `analyst`), `on_summary`
    with each summary; `tool_use` returns the tools of a plan step.
    """

    on_step: Callable[[AgentStep, str], None]
    on_summary: Callable[[SummaryResult], None]
    tool_use: Callable[[PlanStep], Awaitable[ToolUse | None]]


@dataclass(frozen=True, slots=True)
class LoopModels:
    """Implements PlanModels of agents.plan.run. `own_prompt` is the agent's system prompt."""

    main: BudgetedModel
    fast: BudgetedModel
    own_prompt: str
    ports: PlanPorts

    async def ask(self, system: str, question: Message) -> str:
        context = self.main.assemble(system, question)
        who = ANALYST if system.startswith(ANALYST_MARK) else PLANNER
        return await self._listen(run_react(self.main.model, context), who)

    async def summarise_history(self, history: Sequence[Message]) -> str:
        return await self._summarise(history, "planner_input")

    async def run_step(self, step: PlanStep, dependencies: tuple[PlanStep, ...]) -> str:
        tool_use = await self.ports.tool_use(step)
        task = text_message("user", step.task, kind="question", pinned=True)
        try:
            found = await self._fit_dependencies(dependencies)
            context = self.fast.assemble(step_prompt(self.own_prompt), task, found, tool_use)
            working = run_react(self.fast.model, context, tool_use=tool_use, summariser=self._summariser)
            text = await self._listen(working, step.id)
        except (ModelError, ContextError) as error:
            raise StepFailed(str(error)) from error
        if not text.strip():
            raise StepFailed(EMPTY)
        return cut_middle(text, DEPENDENCY_CHARS)

    async def _listen(self, steps: AsyncGenerator[AgentStep, None], who: str) -> str:
        """Return the text of a loop's last call. Text between tool calls is not part of the result."""
        said: list[str] = []
        async with aclosing(steps):
            async for step in steps:
                self.ports.on_step(step, who)
                if isinstance(step, TextDelta):
                    said.append(step.text)
                elif isinstance(step, CallFinished) and step.has_tool_calls:
                    said.clear()
        return storable_text("".join(said))

    async def _fit_dependencies(self, dependencies: Sequence[PlanStep]) -> tuple[Message, ...]:
        """Return the results a step depends on, within half of the window; those over their share are summarised."""
        messages = dependency_messages(dependencies)
        room = self.fast.calibration.invert(self.fast.budget.input_tokens) // 2
        if total_tokens(messages) <= room:
            return messages
        shorter = [
            replace(
                step,
                result=await self._summarise([text_message("assistant", step.result)], "step_dependency"),
            )
            if message.tokens > room // len(messages)
            else step
            for step, message in zip(dependencies, messages, strict=True)
        ]
        return dependency_messages(shorter)

    @property
    def _summariser(self) -> Summariser:
        fast = self.fast
        return Summariser(fast.model, fast.budget, fast.calibration, self.ports.on_summary)

    async def _summarise(self, messages: Sequence[Message], hint: Hint) -> str:
        summary = await self._summariser.summarise(messages, previous="", policy=self.fast.policy, hint=hint)
        return summary.text if summary.fallback_reason is None else f"{EXTRACT_LEAD}\n\n{summary.text}"
