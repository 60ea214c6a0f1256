"""Plan mode of a run: which runs have a plan, which models carry it out, and reporting its progress to readers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import assert_never, cast
from uuid import UUID

from agents.background.summarise import SummaryResult
from agents.chat_models.usage import count_request
from agents.loop.react import AgentStep, CallFinished, CallSent, Notice
from agents.plan.choosing import RunMode, WantedMode, choose_mode
from agents.plan.prompts import results_message
from agents.plan.run import PlanChanged, PlanDropped, PlanItem, PlanNotice, PlanReady, PlanRequest, run_plan
from agents.plan.scheduler import Steps
from agents.plan.steps import RESERVED, PlanStep
from agents.plan.working import BudgetedModel, LoopModels, PlanPorts
from agents.ports import CallKey, ToolUse
from agents.requests.context import AssembledContext
from agents.tools.protocol import ToolCaller
from agents.types import ReasoningDelta, TextDelta
from chatapp.accounts.budgets.values import Spender
from chatapp.agent_presets.models import Agent
from chatapp.context.assembly import LoadedContext
from chatapp.context.policies import ContextRules, agent_of, rules_for
from chatapp.context.sources import RequestSources
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.database.threads import retry_on_outage
from chatapp.providers.actions import note_named_window
from chatapp.providers.calibration import note_token_counts
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import fast_model_of
from chatapp.providers.usage import CallUsage, priced_call
from chatapp.runs import shapes
from chatapp.runs.actions.requests import NewRequest
from chatapp.runs.actions.runs import Lease, record_plan
from chatapp.runs.background_work import store_in_background
from chatapp.runs.call_timing import OpenCall
from chatapp.runs.models import Run
from chatapp.runs.selectors import calls_of_step
from chatapp.runs.tool_ports import ToolPorts, record_spent
from memory.types import Message

NOTICE = "plan"
DROPPED = "plan_dropped"


# --- Before the run: read from the database ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanSetup:
    """The model of the steps, with rules of its own. If a run is continued, `resumed` is its plan and `question` its
    question."""

    fast: ModelConfig
    fast_rules: ContextRules
    resumed: Steps = ()
    question: Message | None = None


def mode_of(run: Run) -> RunMode:
    """Return the mode of a run: the sender's, else the conversation's, else its agent's. A continued run keeps its
    mode."""
    if run.continues_id is not None:
        return "plan" if _plan_continued_by(run) else "react"
    question = message_values.text_of(run.question.parts) if run.question else ""
    return choose_mode(_wanted_mode(run), question)


def _wanted_mode(run: Run) -> WantedMode:
    agent = agent_of(run.conversation)
    said = run.mode or run.conversation.mode or (agent.mode if agent else "")
    return cast(WantedMode, said) if said in ("plan", "auto") else "react"


def _plan_continued_by(run: Run) -> Steps:
    if run.continues_id is None:
        return ()
    plans = Run.objects.filter(answer=run.continues_id).values_list("plan", flat=True)
    return shapes.plan_from_json(plans.first())


def set_up_plan(run: Run, loaded: LoadedContext) -> PlanSetup:
    fast = fast_model_of(loaded.config)
    rules = rules_of_steps(fast, loaded.config, loaded.rules, conversation=loaded.conversation)
    asked = (
        message_values.message_value(run.question) if run.question and run.continues_id is not None else None
    )
    return PlanSetup(fast, rules, _plan_continued_by(run), asked)


def rules_of_steps(
    fast: ModelConfig,
    main: ModelConfig,
    main_rules: ContextRules,
    conversation: Conversation | None = None,
    agent: Agent | None = None,
) -> ContextRules:
    """Return the context rules for the steps: those of the agent and conversation, but with the fast model's window. A
    window that they set applies only to the answering model."""
    if fast == main:
        return main_rules
    rules, own = (
        rules_for(fast, conversation, agent),
        rules_for(fast, asked_in=conversation).resolved,
    )
    # A user's limit on the input applies to the steps, too.
    budget = replace(own.budget, input_limit=rules.policy.max_input_tokens)
    return replace(rules, resolved=replace(own, budget=budget))


# --- In the run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanHost:
    """The run that a plan belongs to. `earlier` are tool calls that must not be repeated; `calls` are model calls not
    stored yet; `sources` and `numbers` are for its requests; `notify` shows the user a sentence of a kind; `beside`
    starts work that nothing waits for; `spender` pays for the calls."""

    lease: Lease
    caller: ToolCaller
    earlier: Mapping[CallKey, str | None]
    calls: list[CallUsage]
    sources: RequestSources
    numbers: Iterator[int]
    notify: Callable[[str, str], None]
    beside: Callable[[Awaitable[object]], None]
    spender: Spender


class Planning:
    """The plan of one run, from its planner to its results."""

    def __init__(self, setup: PlanSetup, loaded: LoadedContext, host: PlanHost) -> None:
        self.setup = setup
        self.loaded = loaded
        self.host = host
        self._calls: dict[str, OpenCall] = {}
        self._unstored: list[NewRequest] = []
        """Requests are stored after the plan that they quote."""

    async def carry_out(self, context: AssembledContext) -> AssembledContext:
        """Carry out the plan and return the context with its findings; unchanged if the answer needs no plan.

        Raise the planner's ModelError and ContextError.
        """
        request = PlanRequest(
            # Take it from the request, not from the view: only there it has its images.
            question=self.setup.question or context.request.messages[-1],
            history=_without_question(context.messages),
            own_prompt=context.inputs.system.text,
            input_tokens=context.budget_tokens,
            calibration=context.inputs.calibration,
            tools=context.inputs.tools,
            resumed=self.setup.resumed,
        )
        found: Message | None = None
        try:
            async with aclosing(run_plan(self._models(context), request)) as items:
                async for item in items:
                    found = await self._take(item)
        finally:
            # Store the requests even if the planner failed, so that they can be inspected.
            self._store_requests()
        # Use a thread: fitting a full window again would block the event loop for too long.
        return context if found is None else await retry_on_outage(with_findings)(context, found)

    def unfinished_calls(self) -> list[CallUsage]:
        """Return the estimated usage of calls that ended early after output had begun: they have a cost, too."""
        return [self._estimate(call, who) for who, call in self._calls.items() if call.written]

    def _estimate(self, call: OpenCall, who: str) -> CallUsage:
        return replace(call.estimate(self._config_of(who), "plan"), plan_step=who)

    def _models(self, context: AssembledContext) -> LoopModels:
        """Return the models of planner, steps and answer. Raise ModelError."""
        main, fast = (self.loaded.config, self.loaded.rules), (self.setup.fast, self.setup.fast_rules)
        ports = PlanPorts(self._note, self._note_summary, self._tool_use)
        return plan_models(main, fast, context, self.host.spender, ports)

    async def _take(self, item: PlanItem) -> Message | None:
        match item:
            case PlanChanged():
                await record_spent(
                    self.host.calls,
                    lambda spent: retry_on_outage(record_plan)(
                        lease=self.host.lease, steps=item.steps, spent=spent, now=clock.now()
                    ),
                )
                self._store_requests()
            case PlanNotice():
                self.host.notify(NOTICE, item.text)
            case PlanDropped():
                self.host.notify(DROPPED, item.reason)
            case PlanReady():
                return results_message(item.reports, item.missing)
            case _:
                assert_never(item)
        return None

    def _note(self, step: AgentStep, who: str) -> None:
        """Record a step of a model loop; `who` is its plan step or role. Its text belongs to the step's result, not to
        the answer."""
        match step:
            case CallSent():
                # A retried step: its broken call has no `CallFinished` but has a cost, too.
                if (broken := self._calls.get(who)) is not None and broken.written:
                    self.host.calls.append(self._estimate(broken, who))
                call = self._calls[who] = OpenCall(step, self.host.numbers)
                self._store_request(step, call.clock.request_n, who)
            case TextDelta(text=text) | ReasoningDelta(text=text):
                self._calls[who].note(text)
            case Notice():
                self.host.notify(step.kind, _said_by(who, step.text))
                self._learn_window(step.window_tokens, who)
            case CallFinished():
                self._note_call(step, who)

    def _store_request(self, step: CallSent, n: int, who: str) -> None:
        tokens = step.context.inputs.calibration.apply(count_request(step.sent.request))
        request = NewRequest(
            n=n,
            purpose="plan",
            model_name=self._config_of(who).name,
            sent=step.sent,
            stored=(),
            sources=self.host.sources,
            tokens=tokens,
        )
        self._unstored.append(request)

    def _store_requests(self) -> None:
        for request in self._unstored:
            self.host.beside(store_in_background(self.host.lease, request))
        self._unstored.clear()

    async def _tool_use(self, step: PlanStep) -> ToolUse:
        """Return how a step's tool calls are executed: recorded and approved as in any answer, but without injected
        messages."""
        lease, earlier = self.host.lease, self.host.earlier
        if step.attempts > 1:
            # `earlier` only has the calls of other runs.
            earlier = {**earlier, **await retry_on_outage(calls_of_step)(lease.run_id, step.id)}
        ports = ToolPorts(lease, self.host.caller, self.host.calls, plan_step=step.id)
        return ToolUse(
            self.loaded.tools, self.host.caller, records=ports, consents=ports, store=ports, earlier=earlier
        )

    def _learn_window(self, window_tokens: int | None, who: str) -> None:
        rules = self.loaded.rules if who in RESERVED else self.setup.fast_rules
        if window_tokens and window_tokens < rules.budget.context_size:
            conversation_id, config = self.loaded.conversation.pk, self._config_of(who)
            self.host.beside(note_window(self.host.lease, conversation_id, config, window_tokens))

    def _note_call(self, step: CallFinished, who: str) -> None:
        call, config = self._calls.pop(who), self._config_of(who)
        priced = priced_call(config, step.usage, "plan")
        self.host.calls.append(replace(priced, times=call.clock.read(), plan_step=who))
        if step.usage.exact:
            note_token_counts(config.pk, call.clock.request_tokens, step.usage.input_tokens)

    def _note_summary(self, summary: SummaryResult) -> None:
        for usage in summary.usages:
            self.host.calls.append(priced_call(self.setup.fast, usage, "compaction"))
        if summary.fallback_reason is not None:
            self.host.notify(NOTICE, f"No model's summary: {summary.fallback_reason}.")

    def _config_of(self, who: str) -> ModelConfig:
        return self.loaded.config if who in RESERVED else self.setup.fast


def with_findings(context: AssembledContext, found: Message) -> AssembledContext:
    """Return the context with the findings right before the question, like notes, and without tools: only the steps use
    them."""
    inputs = replace(context.inputs, notes=(*context.inputs.notes, found), tools=())
    return replace(context, inputs=inputs, view=inputs.fit())


def _without_question(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message for message in messages if message.role != "system" and message.kind != "question")


def plan_models(
    main: tuple[ModelConfig, ContextRules],
    fast: tuple[ModelConfig, ContextRules],
    context: AssembledContext,
    spender: Spender,
    ports: PlanPorts,
) -> LoopModels:
    """Return the models of planner and answer (`main`) and of the steps (`fast`). Raise ModelError."""

    def ruled(config: ModelConfig, rules: ContextRules) -> BudgetedModel:
        model = chat_model_for(config, spender)
        return BudgetedModel(model, rules.policy, rules.budget, rules.calibration, context.inputs.temperature)

    return LoopModels(
        main=ruled(*main), fast=ruled(*fast), own_prompt=context.inputs.system.text, ports=ports
    )


def note_window(lease: Lease, conversation_id: UUID, config: ModelConfig, tokens: int) -> Awaitable[object]:
    """Store the window size that a provider named when it refused a request of this run."""
    return retry_on_outage(note_named_window)(
        config=config,
        conversation_id=conversation_id,
        tokens=tokens,
        named_by=str(lease.run_id),
        now=clock.now(),
    )


def _said_by(who: str, text: str) -> str:
    return f"The {who}: {text}" if who in RESERVED else f"Step {who}: {text}"
