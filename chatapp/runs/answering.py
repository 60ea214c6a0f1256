"""Executes a run: loads the context, asks the model, passes on its output and describes how the run ended."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from uuid import UUID

from agents import events
from agents.background.summarise import Summariser, SummaryResult
from agents.chat_models.usage import count_request
from agents.errors import ModelError
from agents.loop.react import SHORTENED, AgentStep, CallFinished, CallSent, Notice, run_react
from agents.plan.steps import PLANNER_INPUT_TOKENS
from agents.ports import ToolUse
from agents.requests.context import AssembledContext
from agents.text import storable_text
from agents.tools.protocol import Tool, ToolCaller
from agents.types import FinishReason, ReasoningDelta, TextDelta, TokenUsage
from chatapp.accounts.budgets.values import Spender
from chatapp.compaction.compactor import compact_inline, queue_emergency, queue_next_compaction
from chatapp.compaction.planning import AT_ONCE, is_cooling, may_be_due, summary_model_of
from chatapp.context.assembly import LoadedContext
from chatapp.context.policies import ContextRules, rules_for
from chatapp.context.recalled import FAILED_SENTENCE, RECALL_FAILED, Recalled
from chatapp.context.sources import RequestSources
from chatapp.files.attachments import load_data_urls
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import LeaseLost
from chatapp.providers.calibration import note_token_counts
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.models import ModelConfig
from chatapp.providers.usage import CallUsage, priced_call
from chatapp.recall.actions.sources import recalled_rows
from chatapp.runs import hooks
from chatapp.runs.actions.endings import Outcome
from chatapp.runs.actions.requests import NewRequest
from chatapp.runs.answer_ends import KEPT, NOTHING_KEPT, describe_end
from chatapp.runs.background_work import BackgroundWork, store_in_background
from chatapp.runs.call_timing import CallClock
from chatapp.runs.hook_tools import HookRun
from chatapp.runs.models import Run
from chatapp.runs.plans import PlanHost, Planning, note_window
from chatapp.runs.run_context import PreparedRun, assemble_and_recall, describe_run
from chatapp.runs.run_events import RunEvents
from chatapp.runs.streaming import DeltaPump, LiveAnswer
from chatapp.runs.time_limit import TimeLimit
from chatapp.runs.tool_ports import ToolPorts
from memory.errors import ContextError
from memory.tokens import estimate_text, text_message, total_tokens

LEFT_OUT = (
    "The conversation is longer than the model's window; its oldest messages were left out of this request."
)
NOT_YET_SUMMARISED = (
    "The conversation is longer than the model's window; until its oldest messages are summarised, an extract "
    "replaces them."
)


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
        self.background_work = BackgroundWork(live.lease)
        self._asked: tuple[AssembledContext, Recalled] | None = None
        """What the first request consists of, for readers; set until that request is being stored."""
        self._last_facts: list[events.Fact] = []
        self._call_count = 0
        self._has_planned = False
        self._is_emergency = False
        self._last_reason: FinishReason = "stop"
        self._time_limit = ""
        """The sentence for the user, set once the limit is reached."""

    async def answer(self) -> Outcome:
        """Return how the run ended; model and context errors become outcomes. Propagate CancelledError and unexpected
        errors."""
        if self.prepared.context is None or self.prepared.refusal is not None:
            return self._refused(self.prepared.refusal)
        try:
            await self._ask(self.prepared.context)
        except ContextError as error:
            return self.ended(Run.Status.FAILED, "too_large", str(error))
        except ModelError as error:
            self._learn_window(error.window_tokens)
            return self.ended(Run.Status.FAILED, error.category, error.message, error.detail)
        finally:
            if self._asked is not None:  # it ended before the first request
                self.background_work.begin(self._record_asked(None))
            # Wait before the run ends: its lease ends with it, and the side work writes under that lease.
            await self.background_work.settle()
        end = describe_end(self._last_reason, has_text=self.live.has_text, time_limit=self._time_limit)
        return self.ended(*end)

    async def _ask(self, loaded: LoadedContext) -> None:
        limit = TimeLimit(loaded.time_limit_s)
        try:
            async with limit.running():
                await self._ask_model(await self._run_hooks(loaded))
        except TimeoutError as error:
            # This timeout is not the answer's time limit.
            if not limit.has_passed:
                raise
            follows = KEPT if self.live.has_text else NOTHING_KEPT
            sentence = f"The time limit of {loaded.time_limit_s:g} s for one answer was reached; {follows}"
            if not self.live.has_text:
                raise ModelError("timeout", sentence) from error
            # With text, the run is complete and its answer is marked as cut, see `describe_end`.
            self._time_limit = sentence

    async def _run_hooks(self, loaded: LoadedContext) -> LoadedContext:
        """Run the hooks of the turn's start and return the context, reloaded if a hook compacted it."""
        # It is assembled in advance only if no hook runs before the first call.
        if self.prepared.assembled is not None:
            return loaded
        run = HookRun(self.live.lease, self.prepared.earlier)
        self.loaded, fired = await hooks.start_turn(loaded, run, reload=self._reload)
        if fired:
            self.background_work.tell(*self.facts.fired(fired))
        return self.loaded

    def _reload(self) -> LoadedContext:
        """Reload the run's context. Raise LeaseLost if the conversation was deleted meanwhile."""
        try:
            context = describe_run(self.live.lease.run_id).context
        except Run.DoesNotExist:
            raise LeaseLost("The conversation was deleted.") from None
        assert context is not None
        return context

    async def _ask_model(self, loaded: LoadedContext) -> None:
        if self.prepared.plan is not None and not self.prepared.plan.resumed:
            loaded = await self._make_checkpoint(loaded)
        # Fit it in a thread: a full window takes longer than the event loop may be blocked.
        if self.prepared.assembled is not None:
            context, recalled = self.prepared.assembled
        else:
            context, recalled = await retry_on_outage(assemble_and_recall)(loaded, self.live.lease.run_id)
        data_urls = await load_data_urls(loaded.user_id, context.image_ids) if context.image_ids else {}
        context = replace(context, data_urls=data_urls)
        checkpoint, inputs = context.view.checkpoint, context.inputs
        self.sources = RequestSources(
            messages=(*inputs.left_out.sample, *inputs.messages, inputs.question),
            checkpoint_id=checkpoint.id if checkpoint else None,
            recalled=[item.source for item in recalled.items_in_view],
            newer={newer.source_id for turn in recalled.turns_in_view for newer in turn.newer},
            profile_of=loaded.user_id if inputs.profile is not None else None,
        )
        tools = loaded.tools
        self._asked = context, recalled
        # A plan's calls do not pass through `_take`, which otherwise records this with the first request.
        if self.prepared.plan is not None:
            await self._record_asked(None)
            self.planning = Planning(self.prepared.plan, loaded, self._plan_host(loaded))
            context = await self.planning.carry_out(context)
            tools = tools if context.inputs.tools else ()
        self.asked = context
        if context.view.dropped:
            sentence = NOT_YET_SUMMARISED if loaded.rules.policy.has_summary else LEFT_OUT
            self._notice("truncated", sentence)
        if recalled.has_failed:
            self._notice(RECALL_FAILED, FAILED_SENTENCE)
        answering = run_react(
            chat_model_for(loaded.config, self._spender(loaded)),
            context,
            tool_use=self._tool_use(loaded, tools),
            summariser=await self._summariser(loaded),
        )
        # Otherwise a generator that is left early, and the model's stream, stays open until garbage collection.
        async with aclosing(answering) as steps:
            async for step in steps:
                self._take(step)

    async def _make_checkpoint(self, loaded: LoadedContext) -> LoadedContext:
        """Return the context with a new checkpoint, which serves later questions, too, if the planner cannot read the
        whole history; unchanged if no checkpoint is needed or none can be made."""
        if not loaded.rules.policy.has_summary:
            return loaded
        parts = (await retry_on_outage(loaded.assemble)()).parts
        if parts.summary + parts.history <= PLANNER_INPUT_TOKENS:
            return loaded
        # The newest messages alone may be too long for the planner. A checkpoint per question would not help then.
        if await retry_on_outage(is_cooling)(loaded, self.live.lease.run_id):
            return loaded
        self._has_planned = True
        if not await compact_inline(loaded, AT_ONCE):
            return loaded
        # Notes of hooks are not stored in any message, so the reloaded context lacks them.
        self.loaded = (await retry_on_outage(self._reload)()).with_notes(loaded.inputs.notes)
        return self.loaded

    async def _summariser(self, loaded: LoadedContext) -> Summariser | None:
        """Return the summariser for messages that leave the request during the answer; None if the policy does not wait
        for summaries or there are no tools."""
        if not loaded.rules.policy.summarises_steps or not loaded.tools:
            return None
        config, rules = await retry_on_outage(_summary_rules)(loaded)

        def note(summary: SummaryResult) -> None:
            self.calls.extend(priced_call(config, usage, "compaction") for usage in summary.usages)
            if summary.window_tokens:
                self.background_work.begin(self._note_window(config, summary.window_tokens))

        return Summariser(
            chat_model_for(config, self._spender(loaded)), rules.budget, rules.calibration, note
        )

    def _plan_host(self, loaded: LoadedContext) -> PlanHost:
        return PlanHost(
            lease=self.live.lease,
            caller=self._caller(loaded),
            earlier=self.prepared.earlier,
            calls=self.calls,
            sources=self.sources,
            numbers=self.numbers,
            notify=self._notice,
            beside=self.background_work.begin,
            spender=self._spender(loaded),
        )

    def _spender(self, loaded: LoadedContext) -> Spender:
        """Return the spender of this run, which shows its warnings in the conversation."""
        return replace(loaded.spender, notify=partial(self._notice, "budget"))

    def _notice(self, kind: str, text: str) -> None:
        self.background_work.tell(self.facts.notice(kind, text))

    def _caller(self, loaded: LoadedContext) -> ToolCaller:
        return ToolCaller(str(loaded.user_id), self.prepared.conversation_id, str(self.live.lease.run_id))

    def _tool_use(self, loaded: LoadedContext, tools: Sequence[Tool]) -> ToolUse:
        """Return how the model's tool calls are executed: with the rights of the user who asks."""
        caller = self._caller(loaded)
        ports = ToolPorts(self.live.lease, caller, self.calls, has_all=self.prepared.assembled is not None)
        return ToolUse(
            tools,
            caller,
            records=ports,
            consents=ports,
            inbox=ports,
            store=ports,
            earlier=self.prepared.earlier,
        )

    def _take(self, step: AgentStep) -> None:
        match step:
            case CallSent():
                self.asked = step.context
                self._call_count += 1
                self.clock.begin(_estimate(step), self.live.length)
                self.live.begin_part()
                # Describe the request now: the answer, which the request may repeat, grows while it is being stored.
                self.background_work.begin(self._record_asked(self._request_of(step)))
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
                self._notice(step.kind, step.text)
                # SHORTENED is our own cut. After a provider's refusal, `_note_call` queues the compaction.
                self._is_emergency |= step.kind == "shrunk" and step is not SHORTENED
                self._learn_window(step.window_tokens)
            case CallFinished():
                self._note_call(step)

    def _request_of(self, step: CallSent) -> NewRequest:
        inputs = step.context.inputs
        # Such a request cannot contain results of this run's tools, hooks or plan, so their texts need not be read.
        is_plain = self._call_count == 1 and self.planning is None and not inputs.notes
        sources = replace(
            self.sources,
            answer=self.live.answer.text,
            reasoning=self.live.reasoning.text,
            has_calls=not is_plain,
        )
        return NewRequest(
            n=self.clock.request_n,
            purpose="chat",
            model_name=self.prepared.model_name,
            sent=step.sent,
            stored=(*inputs.messages, inputs.question),
            sources=sources,
            tokens=inputs.calibration.apply(count_request(step.sent.request)),
        )

    def _record_asked(self, request: NewRequest | None) -> Awaitable[None]:
        """Store a request. With the first one, also store what it consists of."""
        asked, self._asked = self._asked, None
        if asked is not None:
            return self._record_first(*asked, request)
        assert request is not None
        return store_in_background(self.live.lease, request)

    async def _record_first(
        self, context: AssembledContext, recalled: Recalled, request: NewRequest | None
    ) -> None:
        """Store the first request together with what it consists of, after it was sent."""
        facts = self.facts.asked(context, recalled.items)
        rows = [*recalled_rows(self.live.lease.run_id, recalled.turns, starts_anew=recalled.starts_anew)]
        await self.background_work.record_first_request(request, facts, rows)

    def _summarise_what_was_cut(self) -> None:
        """Queue a compaction if messages were left out of the request. Call it at the first word of the answer: the
        user does not wait for the summary then."""
        if self.asked is None or self.asked.view.dropped is None or self._has_planned or self._is_emergency:
            return
        self._has_planned = True
        self.background_work.begin(
            retry_on_outage(queue_next_compaction)(UUID(self.prepared.conversation_id))
        )

    def _learn_window(self, window_tokens: int | None) -> None:
        """Store the window size that the provider named when it refused a request."""
        loaded = self.loaded
        if loaded is not None and window_tokens and window_tokens < loaded.rules.budget.context_size:
            self.background_work.begin(self._note_window(loaded.config, window_tokens))

    def _note_window(self, config: ModelConfig, tokens: int) -> Awaitable[object]:
        return note_window(self.live.lease, UUID(self.prepared.conversation_id), config, tokens)

    # --- the end -----------------------------------------------------------------------------------

    def _note_call(self, step: CallFinished) -> None:
        assert self.loaded is not None
        self._last_reason = step.reason
        config = self.loaded.config
        kept_out = step.context.kept_out_tokens
        priced = priced_call(config, step.usage, "chat", kept_out_tokens=kept_out)
        self.calls.append(replace(priced, times=self.clock.read()))
        # The call is complete: if the run ends from here on, no call is unfinished.
        self.asked = None
        if step.context.shrinks and not self._has_planned:
            self._has_planned = True
            self.background_work.begin(retry_on_outage(queue_emergency)(self.loaded, step.context))
        if step.usage.exact:
            if not step.has_tool_calls:
                self._last_facts = [self.facts.context(step.context, step.usage.input_tokens, is_exact=True)]
            # Only exact counts from the provider correct our estimates.
            note_token_counts(config.pk, self.clock.request_tokens, step.usage.input_tokens)

    @property
    def leaves_nothing(self) -> bool:
        """Return whether no hook and no compaction follows this turn, as far as the session knows. False for an answer
        of several calls: then what follows is decided once the answer is stored."""
        loaded, question = self.loaded, self.loaded.inputs.question if self.loaded else None
        if loaded is None or question is None or question.position is None:
            return False
        if self._call_count != 1 or self.planning is not None or self._has_planned:
            return False
        answer = replace(text_message("assistant", self.live.answer.text), position=question.position + 1)
        asked = replace(question, kind="message", pinned=False)
        has_hooks = any(hook.on == "turn_end" for hook in loaded.rules.hooks)
        return not has_hooks and not may_be_due(loaded, (asked, answer))

    def ended(self, status: str, category: str = "", sentence: str = "", detail: str = "") -> Outcome:
        """Return the outcome of a run that ends now, with the text and the usage so far."""
        # Provider errors may quote NUL or half a surrogate pair, which PostgreSQL cannot store.
        said = {"message": storable_text(sentence), "detail": storable_text(detail)}
        error = events.RunError(category=category, **said) if sentence else None
        return Outcome(
            status=status,
            answer=self.live.partial,
            calls=[*self.calls, *self._unfinished_calls()],
            error=error,
            facts=tuple(self._last_facts),
        )

    def _unfinished_calls(self) -> list[CallUsage]:
        """Return the estimated usage of a call that ended early: it has a cost, but the provider did not report it."""
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
    return config, rules_for(config, asked_in=loaded.conversation)


def _estimate(step: CallSent) -> int:
    request = step.sent.request
    # Tools were already counted for the view and are the same in every request of the answer.
    return total_tokens(request.messages) + (step.context.view.tools_tokens if request.tools else 0)
