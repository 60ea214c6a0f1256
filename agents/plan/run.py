"""Run plan mode: plan, steps, analysis, and a new plan for what is missing, until the question can be answered.

The answer itself is written by the ordinary loop, with the results in its context.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from agents.errors import ModelError
from agents.plan.parsing import Analysis, PlanError, read_analysis, read_plan
from agents.plan.prompts import (
    ANALYST_PROMPT,
    analysis_question,
    correction_prompt,
    enrich_query,
    extended,
    fit_reports,
    planner_prompt,
    replan_prompt,
    report_steps,
)
from agents.plan.scheduler import Steps, run_steps
from agents.plan.steps import (
    ANALYSIS_CHARS,
    DEPENDENCY_CHARS,
    MAX_ROUNDS,
    PLANNER_INPUT_TOKENS,
    REPLAN_CHARS,
    PlanStep,
)
from agents.types import ToolSpec
from memory.errors import ContextError
from memory.summaries.transcript import render_transcript
from memory.tokens import Calibration, text_message
from memory.truncate import cut_middle
from memory.types import Message


class PlanModels(Protocol):
    """The models of a plan: `ask` calls the main model, the other two methods call the fast one."""

    async def ask(self, system: str, question: Message) -> str:
        """Return the answer of one call without tools or history. Raise ModelError or memory.errors.ContextError."""
        ...

    async def summarise_history(self, history: Sequence[Message]) -> str:
        """Return a summary for the planner; an extract if no model can write one."""
        ...

    async def run_step(self, step: PlanStep, dependencies: tuple[PlanStep, ...]) -> str:
        """Return the result of a step. Raise agents.plan.scheduler.StepFailed."""
        ...


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The question to plan for, and its context.

    `history` is the view of the conversation without its question, `own_prompt` the agent's system prompt,
    `input_tokens` the main model's budget. `resumed` are the steps of a run that was interrupted.
    """

    question: Message
    history: tuple[Message, ...]
    own_prompt: str
    input_tokens: int
    calibration: Calibration = field(default_factory=Calibration)
    tools: tuple[ToolSpec, ...] = ()
    resumed: Steps = ()

    @property
    def results_tokens(self) -> int:
        """Return the tokens for all results together: half of what the question leaves of the main model's budget."""
        return max(0, self.input_tokens - self.calibration.apply(self.question.tokens)) // 2


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The current state of all steps of all rounds."""

    steps: Steps


@dataclass(frozen=True, slots=True)
class PlanNotice:
    """Something did not go as planned; `text` is one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class PlanReady:
    """All steps have ended: answer from `reports`. `missing` is what the analyst says is not known."""

    reports: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PlanDropped:
    """No plan was made: answer without one. `reason` is one sentence."""

    reason: str


PlanItem = PlanChanged | PlanNotice | PlanReady | PlanDropped

SHORTER_HISTORY = PlanNotice("The conversation was too long for the planner; it received only part of it.")
UNREAD_ANALYSIS = PlanNotice(
    "The analyst could not judge whether the goal was reached; answering with what the steps found."
)
NO_STEPS = PlanDropped("This needs no steps; answering directly.")


async def run_plan(models: PlanModels, request: PlanRequest) -> AsyncGenerator[PlanItem, None]:
    """Yield the progress of a plan, ended by PlanReady or PlanDropped.

    Raise ModelError or ContextError if the first plan fails; a later failure ends the rounds and keeps the results.
    """
    planner = _Planner(models, request)
    # The run was interrupted after its last step, so all results exist.
    if request.resumed and all(step.is_over for step in request.resumed):
        yield PlanReady(planner.reports(request.resumed))
        return
    dropped = NO_STEPS
    try:
        steps = _restarted(request.resumed) or await planner.plan()
    except PlanError as error:
        steps, dropped = (), PlanDropped(f"No usable plan was made ({error}); answering without one.")
    for notice in planner.take_notices():
        yield notice
    if not steps:
        yield dropped
        return
    over: Steps = ()
    while steps:
        # Close the steps together with this generator, so that they are cancelled and awaited.
        async with aclosing(run_steps(steps, models.run_step, earlier=over)) as boards:
            async for steps in boards:
                yield PlanChanged((*over, *steps))
        over = (*over, *steps)
        steps = await planner.next_steps(over)
        for notice in planner.take_notices():
            yield notice
    yield PlanReady(planner.reports(over), planner.missing)


def _restarted(steps: Steps) -> Steps:
    """Return the steps of an interrupted run: finished ones stay done, all others start again."""
    return tuple(
        step if step.state == "done" else replace(step, state="pending", attempts=0, result="")
        for step in steps
    )


class _Planner:
    """Makes plans and judges their results with the main model."""

    def __init__(self, models: PlanModels, request: PlanRequest) -> None:
        self._models = models
        self._request = request
        self.missing = ""
        """What is not known, according to the last analysis."""
        self._history: str | None = None
        self._had_shorter_history = False
        self._notices: list[PlanNotice] = []

    def take_notices(self) -> list[PlanNotice]:
        notices, self._notices = self._notices, []
        return notices

    def reports(self, steps: Steps, chars_a_step: int = DEPENDENCY_CHARS) -> str:
        return fit_reports(steps, chars_a_step, self._request.results_tokens, self._request.calibration)

    async def plan(self, remark: str = "", *, number: int = 1, earlier: Steps = ()) -> Steps:
        """Return the steps of round `number`. Retry an invalid plan once, with its problem, then raise PlanError."""
        problem = ""
        for _ in range(2):
            remarks = "\n\n".join(
                text for text in (remark, correction_prompt(problem) if problem else "") if text
            )
            answer = await self._ask_planner(remarks)
            try:
                return read_plan(answer, number=number, earlier=earlier)
            except PlanError as error:
                problem = str(error)
        raise PlanError(problem)

    async def next_steps(self, over: Steps) -> Steps:
        """Return the steps of another round; none if the results suffice or another round would not help."""
        analysis = await self._judge(over)
        self.missing = analysis.missing if analysis else ""
        last_round = max(step.round for step in over)
        if analysis is None or not analysis.wants_replanning or last_round >= MAX_ROUNDS:
            return ()
        remark = replan_prompt(report_steps(over, REPLAN_CHARS), analysis.missing)
        try:
            return await self.plan(remark, number=last_round + 1, earlier=over)
        except (PlanError, ModelError, ContextError) as error:
            text = f"No plan was made for what is missing ({error}); answering with what the steps found."
            self._notices.append(PlanNotice(text))
            return ()

    async def _judge(self, steps: Steps) -> Analysis | None:
        """Return the analyst's judgement. Without one, return None and add a notice: the results are used anyway."""
        question = analysis_question(self._request.question.text, self.reports(steps, ANALYSIS_CHARS))
        asked = text_message("user", question, kind="question", pinned=True)
        try:
            analysis = read_analysis(await self._models.ask(ANALYST_PROMPT, asked))
        except (ModelError, ContextError):
            analysis = None
        if analysis is None:
            self._notices.append(UNREAD_ANALYSIS)
        return analysis

    async def _ask_planner(self, remark: str) -> str:
        """Return the planner's answer. While the request is too large, retry with less history, at last with none."""
        history = await self._planner_history()
        system = planner_prompt(self._request.own_prompt, self._request.tools)
        while True:
            question = enrich_query(self._request.question, history)
            try:
                return await self._models.ask(system, extended(question, remark) if remark else question)
            except (ModelError, ContextError) as error:
                is_too_large = isinstance(error, ContextError) or error.category == "overflow"
                if not history or not is_too_large:
                    raise
            if not self._had_shorter_history:
                self._had_shorter_history = True
                self._notices.append(SHORTER_HISTORY)
            # Halve the history once, then leave it out.
            is_long = len(history) > 2 * REPLAN_CHARS and history == self._history
            history = cut_middle(history, len(history) // 2) if is_long else ""

    async def _planner_history(self) -> str:
        """Return the conversation for the planner, rendered once for all rounds."""
        if self._history is None:
            request = self._request
            history = render_transcript(request.history)
            tokens = request.calibration.apply(enrich_query(request.question, history).tokens)
            if history and tokens > min(PLANNER_INPUT_TOKENS, request.input_tokens):
                history = await self._models.summarise_history(request.history)
            self._history = history
        return self._history
