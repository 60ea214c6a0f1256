"""What each model of a plan is given, inside its bounds: the planner, a step, the last answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.plan.limits import DEPENDENCY_CHARS
from agents.plan.prompts import report_step, report_steps, results_note
from agents.plan.steps import PlanStep
from memory.summary import fence
from memory.tokens import Calibration, estimate_text, text_message, with_parts
from memory.transcript import render_transcript
from memory.types import Message, TextPart

HISTORY_LEAD = "Previous conversation:"
REQUEST_LEAD = "The current request:"
LEAST_RESULT_CHARS = 200
FRAME_CHARS = 200
"""Tags, id and title around a result. A message over its limit would lose its closing tag."""


def enrich_query(question: Message, history: str) -> Message:
    """The question as the planner gets it: the conversation before it, itself whole, its images with it."""
    if not history:
        return replace(question, kind="question", pinned=True)
    lead = f"{HISTORY_LEAD}\n{fence('conversation', history)}\n\n{REQUEST_LEAD}"
    texts = (TextPart(lead), *question.parts)
    return replace(with_parts(question, texts), kind="question", pinned=True)


def history_of(messages: Sequence[Message]) -> str:
    """What was said before, as text."""
    return render_transcript(messages)


def extended(question: Message, text: str) -> Message:
    """The same question with one more remark behind it."""
    return with_parts(question, (*question.parts, TextPart(text)))


def dependency_messages(dependencies: Sequence[PlanStep]) -> tuple[Message, ...]:
    """One for each step, at most DEPENDENCY_CHARS long with its frame."""
    chars = DEPENDENCY_CHARS - FRAME_CHARS
    return tuple(text_message("user", report_step(step, chars)) for step in dependencies)


def fit_reports(
    steps: Sequence[PlanStep], chars_a_step: int, max_tokens: int, calibration: Calibration
) -> str:
    """What came of the steps, each at most so long; where they do not fit together, the longest give first."""
    chars = min(chars_a_step, max((len(step.result) for step in steps), default=1))
    text = report_steps(steps, chars)
    while calibration.apply(estimate_text(text)) > max_tokens and chars > LEAST_RESULT_CHARS:
        chars = max(LEAST_RESULT_CHARS, chars * 3 // 4)
        text = report_steps(steps, chars)
    return text


def results_message(reports: str, missing: str) -> Message:
    """It starts no turn of its own, like what a hook says before the question."""
    return text_message("user", results_note(reports, missing), kind="injected")
