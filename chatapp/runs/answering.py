"""What a run does: load the context, ask the model, pass on what it says, and describe how it ended."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

from agents import events
from agents.context import AssembledContext
from agents.errors import ModelError
from agents.ports import ToolUse
from agents.react import SHORTENED, AgentStep, CallFinished, CallSent, Notice, run_react
from agents.summarise import Summariser, SummaryResult
from agents.text import storable_text
from agents.tools.protocol import Tool, ToolCaller
from agents.types import FinishReason, ReasoningDelta, TextDelta, TokenUsage
from agents.usage import count_request
from chatapp.compaction.compactor import queue_emergency, queue_next_compaction
from chatapp.compaction.planning import summary_model_of
from chatapp.context.assembly import LoadedContext
from chatapp.context.policies import ContextRules, rules_for
from chatapp.context.recalled import FAILED_SENTENCE, RECALL_FAILED
from chatapp.context.sources import RequestSources
from chatapp.files.attachments import load_data_urls
from chatapp.operations import clock
from chatapp.operations.database import in_database, persistently
from chatapp.operations.errors import LeaseLost
from chatapp.providers.actions import record_token_counts, store_detected_sizes
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.usage import CallUsage, priced_call
from chatapp.runs import hooks
from chatapp.runs.actions.endings import Outcome
from chatapp.runs.actions.requests import store_request
from chatapp.runs.actions.runs import record_facts
from chatapp.runs.call_timing import CallClock
from chatapp.runs.hook_tools import HookRun
from chatapp.runs.hooks import Firing
from chatapp.runs.models import Run
from chatapp.runs.plans import PlanHost, Planning
from chatapp.runs.run_context import PreparedRun, assemble_and_recall, describe_run
from chatapp.runs.run_events import RunEvents
from chatapp.runs.streaming import DeltaPump, LiveAnswer
from chatapp.runs.tool_ports import ToolPorts
from memory.errors import ContextError
from memory.tokens import estimate_text, total_tokens

log = logging.getLogger(__name__)

LEFT_OUT = (
    "The conversation is longer than the model's window; its oldest messages were left out of this request."
)
KEPT = "what was written so far is kept. Press Continue to go on."
CUT_SENTENCES: dict[FinishReason, str] = {
    "length": f"The model reached its output limit before the answer was finished; {KEPT}",
    "content_filter": "The provider's content filter ended the answer; what was written so far is kept.",
    "bound": f"The model wrote more than one answer may hold and was stopped; {KEPT}",
}
ONLY_THOUGHTS: dict[FinishReason, str] = {
    "length": "The model used up its output limit on reasoning and wrote no answer; your message is stored. Ask for "
    "something shorter, or choose another model.",
    "content_filter": "The provider's content filter withheld the answer; your message is stored. Rephrase it, or "
    "choose another model.",
    "bound": "The model went on reasoning until it was stopped and wrote no answer; your message is stored. Press "
    "Retry, or choose another model.",
}
NO_ANSWER = "The model answered with nothing; your message is stored. Press Retry."


class Session:
    """One run from its claim to its outcome."""

    def __init__(self, prepared: PreparedRun, live: LiveAnswer, pump: DeltaPump) -> None:
        self.prepared = prepared
        self.loaded = prepared.context
        self.live = live
        self.pump = pump
        self.facts = RunEvents(prepared.conversation_id, str(live.lease.run_id))
        self.calls: list[CallUsage] = []
        self.asked: AssembledContext | None = None
        self.sources = RequestSources()
        self.numbers = itertools.count(1)
        self.clock = CallClock(self.numbers)
        self.planning: Planning | None = None
        self._side_work: list[asyncio.Task[None]] = []
        self._telling = asyncio.Lock()
        self._has_planned = False
        self._is_emergency = False
        self._last_reason: FinishReason = "stop"
        self._time_limit = ""
        """The sentence that tells of it, once it was reached."""

    async def answer(self) -> Outcome:
        """Raises CancelledError as it came, and what nobody expected; model and context errors are outcomes."""
        if self.prepared.context is None or self.prepared.refusal is not None:
            return self._refused(self.prepared.refusal)
        try:
            await self._ask(self.prepared.context)
        except ContextError as error:
            return self.ended(Run.Status.FAILED, "too_large", str(error))
        except ModelError as error:
            return self.ended(Run.Status.FAILED, error.category, error.message, error.detail)
        finally:
            await self._settle()
        return self._answered()

    def _answered(self) -> Outcome:
        """An answer that ended at a limit is complete as a run, and its message is cut."""
        reason = self._last_reason
        if not self.live.has_text:
            is_cut = reason in ONLY_THOUGHTS
            return self.ended(
                Run.Status.FAILED, reason if is_cut else "bad_response", ONLY_THOUGHTS.get(reason, NO_ANSWER)
            )
        if self._time_limit:
            return self.ended(Run.Status.COMPLETE, "bound", self._time_limit)
        if reason in CUT_SENTENCES:
            return self.ended(Run.Status.COMPLETE, reason, CUT_SENTENCES[reason])
        return self.ended(Run.Status.COMPLETE)

    async def _ask(self, loaded: LoadedContext) -> None:
        limit = asyncio.timeout(loaded.time_limit_s)
        try:
            async with limit:
                await self._ask_model(await self._run_hooks(loaded))
        except TimeoutError as error:
            if not limit.expired():
                raise
            sentence = f"The time limit of {loaded.time_limit_s:g} s for one answer was reached; "
            if not self.live.has_text:
                told = f"{sentence}your message is stored. Press Retry, or choose another model."
                raise ModelError("timeout", told) from error
            self._time_limit = sentence + KEPT

    async def _run_hooks(self, loaded: LoadedContext) -> LoadedContext:
        """Of the turn's start. What was compacted on the way is loaded anew."""
        run = HookRun(self.live.lease, self.prepared.earlier)
        loaded = await hooks.start_turn(loaded, run, reload=self._reload, tell=self._tell_hooks)
        self.loaded = loaded
        return loaded

    def _reload(self) -> LoadedContext:
        context = describe_run(self.live.lease.run_id).context
        assert context is not None
        return context

    async def _ask_model(self, loaded: LoadedContext) -> None:
        # In a thread: fitting a full window takes longer than the event loop may stand still.
        context, recalled = await persistently(assemble_and_recall)(loaded, self.live.lease.run_id)
        data_urls = await load_data_urls(loaded.user_id, context.image_ids) if context.image_ids else {}
        context = replace(context, recall=recalled.message, data_urls=data_urls)
        checkpoint, inputs = context.view.checkpoint, context.inputs
        self.sources = RequestSources(
            messages=(*inputs.left_out.sample, *inputs.messages, inputs.question),
            checkpoint_id=checkpoint.id if checkpoint else None,
            recalled=[item.source for item in recalled.items],
        )
        tools = loaded.tools
        if self.prepared.plan is not None:
            self.planning = Planning(self.prepared.plan, loaded, self._plan_host(loaded))
            context = await self.planning.carry_out(context)
            tools = tools if context.inputs.tools else ()
        self.asked = context
        if context.view.dropped and not loaded.rules.summarises:
            self._tell(self.facts.notice("truncated", LEFT_OUT))
        if recalled.has_failed:
            self._tell(self.facts.notice(RECALL_FAILED, FAILED_SENTENCE))
        self._tell(*self.facts.asked(context, recalled.items))
        answering = run_react(
            chat_model_for(loaded.config),
            context,
            tool_use=self._tool_use(loaded, tools),
            summariser=await self._summariser(loaded),
        )
        async with aclosing(answering) as steps:
            async for step in steps:
                self._take(step)

    async def _summariser(self, loaded: LoadedContext) -> Summariser | None:
        """For what leaves in the middle of the answer, where the policy waits for summaries."""
        if not loaded.rules.policy.summarises_steps or not loaded.tools:
            return None
        config, rules = await persistently(_summary_rules)(loaded)

        def note(summary: SummaryResult) -> None:
            self.calls.extend(priced_call(config, usage, "compaction") for usage in summary.usages)

        return Summariser(chat_model_for(config), rules.budget, rules.calibration, note)

    def _plan_host(self, loaded: LoadedContext) -> PlanHost:
        def notify(kind: str, text: str) -> None:
            self._tell(self.facts.notice(kind, text))

        return PlanHost(
            lease=self.live.lease,
            caller=self._caller(loaded),
            earlier=self.prepared.earlier,
            calls=self.calls,
            sources=self.sources,
            numbers=self.numbers,
            notify=notify,
            beside=self._beside,
        )

    def _caller(self, loaded: LoadedContext) -> ToolCaller:
        return ToolCaller(str(loaded.user_id), self.prepared.conversation_id, str(self.live.lease.run_id))

    def _tool_use(self, loaded: LoadedContext, tools: Sequence[Tool]) -> ToolUse:
        """With the rights of the user who asks."""
        caller = self._caller(loaded)
        desk = ToolPorts(self.live.lease, caller, self._take_spent)
        return ToolUse(
            tools,
            caller,
            records=desk,
            consents=desk,
            inbox=desk,
            store=desk,
            earlier=self.prepared.earlier,
        )

    def _take_spent(self) -> list[CallUsage]:
        spent = list(self.calls)
        self.calls.clear()
        return spent

    def _take(self, step: AgentStep) -> None:
        match step:
            case CallSent():
                self.asked = step.context
                self.clock.begin(_estimate(step), self.live.length)
                self.live.begin_part()
                said = replace(self.sources, answer=self.live.answer.text, reasoning=self.live.reasoning.text)
                self._beside(persistently(self._store_request)(step, self.clock.request_n, said))
            case TextDelta(text=text):
                self.clock.note_token()
                self.live.answer.append(text)
                self.pump.wrote(self.live)
                self._summarise_what_was_cut()
            case ReasoningDelta(text=text):
                self.clock.note_token()
                self.live.reasoning.append(text)
                self.pump.wrote(self.live)
            case Notice():
                self._tell(self.facts.notice(step.kind, step.text))
                self._is_emergency |= step.kind == "shrunk" and step is not SHORTENED
                self._learn_window(step.window_tokens)
            case CallFinished():
                self._note_call(step)

    def _store_request(self, step: CallSent, n: int, sources: RequestSources) -> None:
        inputs = step.context.inputs
        store_request(
            lease=self.live.lease,
            n=n,
            purpose="chat",
            model_name=self.prepared.model_name,
            sent=step.sent,
            stored=(*inputs.messages, inputs.question),
            sources=sources,
            tokens=inputs.calibration.apply(count_request(step.sent.request)),
            now=clock.now(),
        )

    def _summarise_what_was_cut(self) -> None:
        """While the model answers, but not before it began to: nobody waits for a summary."""
        if self.asked is None or self.asked.view.dropped is None or self._has_planned or self._is_emergency:
            return
        self._has_planned = True
        self._beside(persistently(queue_next_compaction)(UUID(self.prepared.conversation_id)))

    def _learn_window(self, window_tokens: int | None) -> None:
        """A provider that refused for its window told how large it is; what an operator entered stands above it."""
        if self.loaded is None or not window_tokens or window_tokens >= self.loaded.rules.budget.context_size:
            return
        self._beside(
            persistently(store_detected_sizes)(config=self.loaded.config, context_size=window_tokens)
        )

    # --- beside the answer -------------------------------------------------------------------------

    def _beside(self, work: Awaitable[object]) -> None:
        async def run() -> None:
            try:
                await work
            except LeaseLost as lost:
                log.info("Work beside run %s came too late: %s", self.live.lease.run_id, lost)
            except Exception:
                # The answer goes on without it; a later turn does it again.
                log.exception("Work beside run %s failed.", self.live.lease.run_id)

        self._side_work.append(asyncio.get_running_loop().create_task(run()))

    async def _settle(self) -> None:
        """Nothing of this run is told after its end."""
        if self._side_work:
            await asyncio.wait(self._side_work)

    def _tell(self, *facts: events.Fact) -> None:
        self._beside(self._tell_in_turn(facts))

    async def _tell_in_turn(self, facts: Sequence[events.Fact]) -> None:
        """What is told later has the higher number, however long the first takes to be written."""
        async with self._telling:
            await persistently(record_facts)(lease=self.live.lease, facts=facts)

    def _tell_hooks(self, fired: Sequence[Firing]) -> None:
        if fired:
            self._tell(*self.facts.fired(fired))

    # --- the end -----------------------------------------------------------------------------------

    def _note_call(self, step: CallFinished) -> None:
        assert self.loaded is not None
        self._last_reason = step.reason
        config = self.loaded.config
        kept_out = step.context.kept_out_tokens
        priced = priced_call(config, step.usage, "chat", kept_out_tokens=kept_out)
        self.calls.append(replace(priced, times=self.clock.read()))
        self.asked = None
        if step.context.shrinks and not self._has_planned:
            self._has_planned = True
            self._beside(persistently(queue_emergency)(self.loaded, step.context))
        if step.usage.exact:
            if not step.has_tool_calls:
                self._tell(self.facts.context(step.context, step.usage.input_tokens, is_exact=True))
            self._beside(
                in_database(record_token_counts)(
                    config_id=config.pk,
                    estimated=self.clock.request_tokens,
                    reported=step.usage.input_tokens,
                )
            )

    def ended(self, status: str, category: str = "", sentence: str = "", detail: str = "") -> Outcome:
        """The outcome, whenever and however the run ends."""
        said = {"message": storable_text(sentence), "detail": storable_text(detail)}
        error = events.RunError(category=category, **said) if sentence else None
        return Outcome(
            status=status,
            answer=self.live.partial,
            calls=[*self.calls, *self._unfinished_calls()],
            error=error,
            model_name=self.prepared.model_name,
        )

    def _unfinished_calls(self) -> list[CallUsage]:
        """A call that ended early cost something too; the provider did not say what."""
        if self.planning is not None and self.asked is None:
            return self.planning.unfinished_calls()
        shown = self.live.length - self.clock.shown_before
        if self.asked is None or self.loaded is None or not shown:
            return []
        said = self.live.reasoning.text + self.live.answer.text
        asked = self.asked.inputs.calibration.apply(self.clock.request_tokens)
        usage = TokenUsage(asked, estimate_text(said[-shown:]), exact=False)
        kept_out = self.asked.kept_out_tokens
        priced = priced_call(self.loaded.config, usage, "chat", kept_out_tokens=kept_out)
        return [replace(priced, times=self.clock.read())]

    def _refused(self, refusal: events.RunError | None) -> Outcome:
        refusal = refusal or events.RunError(category="no_model", message="There is no model to answer.")
        return self.ended(Run.Status.FAILED, refusal.category, refusal.message)


def _summary_rules(loaded: LoadedContext) -> tuple[ModelConfig, ContextRules]:
    config = summary_model_of(loaded)
    return config, rules_for(config)


def _estimate(step: CallSent) -> int:
    request = step.sent.request
    return total_tokens(request.messages) + (step.context.view.tools_tokens if request.tools else 0)
