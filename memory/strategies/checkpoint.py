"""Strategy `checkpoint`, the default: cut at once, and summarise in the background. The others derive from it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from memory.budget import TokenBudget
from memory.long_term.superseding import ASK, OVER_TOKENS, known_section
from memory.strategies.protocol import CutReplay, Rejected, Summary, SummaryForm, SummaryRequest
from memory.summaries.extractive import QUICK, extract_missing, write_extract
from memory.summaries.summary import summary_message
from memory.summaries.summary_prompts import Hint, compaction_prompt
from memory.summaries.transcript import split_transcript
from memory.tokens import UNCALIBRATED, Calibration, estimate_text, total_tokens
from memory.types import Message

CHUNK_TOKENS = 24_000
"""Most tokens that one call reads, whatever the window: details in the middle of longer texts get lost."""
LEAST_CHUNK_TOKENS = 200
TOLERANCE = 1.15
"""An answer may exceed its limit by this factor, because the prompt states the limit in words, not tokens."""


class CheckpointStrategy:
    default_max_turns: int = 0
    writes_summaries: bool = True
    waits_for_summary: bool = False
    summarises_steps: bool = False
    prepares_ahead: bool = True

    def plan_cut(self, replay: CutReplay) -> None:
        if replay.has_too_many_turns:
            replay.drop_older_half()
        if replay.is_over_limit:
            replay.keep_tail()

    def summary_cap(self, cap: int, summary_tokens: int) -> int:
        return cap

    def stand_in(self, previous: str, messages: Sequence[Message], max_tokens: int) -> Message:
        # A question waits for the stand-in, so it reads less than a draft does.
        return summary_message(write_extract(previous, messages, max_tokens, QUICK), stand_in=True)

    def draft(self, previous: str, messages: Sequence[Message], max_tokens: int) -> str:
        return write_extract(previous, messages, max_tokens)

    def prompt(self, form: SummaryForm, hint: Hint = "general", keep: str = "") -> str:
        return compaction_prompt(hint, max_tokens=form.max_tokens, keep=keep, custom=form.prompt)

    def requests(
        self,
        messages: Sequence[Message],
        *,
        previous: str,
        form: SummaryForm,
        window: TokenBudget,
        calibration: Calibration = UNCALIBRATED,
        hint: Hint = "general",
        keep: str = "",
    ) -> tuple[SummaryRequest, ...]:
        prompt, known = self.prompt(form, hint, keep), ""
        if form.known:
            prompt, known = f"{prompt}\n\n{ASK}", known_section(form.known)
        # Each call includes the answer to the previous one, so the longest accepted answer must fit as well.
        longest = max(estimate_text(previous), int(form.max_tokens * TOLERANCE))
        space = (
            calibration.invert(window.input_tokens) * 9 // 10 - estimate_text(prompt + known) - longest - 40
        )
        if space < LEAST_CHUNK_TOKENS:
            return ()
        chunks = split_transcript(messages, min(space, CHUNK_TOKENS))
        # Allow more than is accepted, so that an answer cut at this length is rejected as too long.
        output = min(form.max_tokens * 5 // 4 + (OVER_TOKENS if known else 0), window.output_tokens)
        return tuple(SummaryRequest(chunk, prompt, output, known) for chunk in chunks)

    def accept(
        self, answer: str, *, source: Sequence[Message], previous: str, form: SummaryForm
    ) -> Summary | Rejected:
        text = self.lay_out(_clean(answer), form)
        covered = total_tokens(source) + estimate_text(previous)
        reason = _find_fault(text, covered, form.max_tokens)
        if reason:
            return Rejected(reason)
        tokens = estimate_text(text)
        # The summary with its additions must stay shorter than the messages it replaces.
        room = min(form.max_tokens * 3 // 2, covered - 1) - tokens
        missing = extract_missing(source, previous, text, min(room, form.max_tokens // 2))
        full = f"{text}\n\n{missing}" if missing else text
        return Summary(full, estimate_text(full))

    def lay_out(self, answer: str, form: SummaryForm) -> str:
        """Return a cleaned answer in the form that is stored and shown."""
        return answer

    def divider_text(self, message_count: int) -> str:
        return f"Earlier context ({message_count} messages) was summarized by AI."


def _clean(text: str) -> str:
    # An answer that was cut during its reasoning has no closing tag.
    text = re.sub(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", "", text, flags=re.DOTALL).strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```", text, flags=re.DOTALL)
    return fenced.group(1).strip() if fenced else text


def _find_fault(text: str, covered: int, max_tokens: int) -> str | None:
    """Return why a summary is rejected; None if it is accepted. `covered` is the size of what it summarises: a longer
    summary would start the next compaction at once."""
    tokens = estimate_text(text)
    if not text:
        return "the model returned nothing"
    if _is_garbage(text):
        return "the model returned something that is not a summary"
    if tokens > max_tokens * TOLERANCE:
        return f"it has {tokens:,} tokens, but at most {max_tokens:,} are allowed"
    if tokens >= covered:
        return f"it has {tokens:,} tokens, not fewer than the {covered:,} it summarises"
    return None


def _is_garbage(text: str) -> bool:
    """Return whether it is an error page or error object, noise without words, or text that repeats itself."""
    start = text[:200].lstrip().lower()
    if start.startswith(("<!doctype", "<html", '{"error', "error:", "traceback (most recent")):
        return True
    letters = sum(char.isalnum() for char in text)
    if letters < len(text) * 0.3 or text.count("\ufffd") > len(text) // 50:
        return True
    data = text.encode("utf-8", "replace")
    return len(data) > 400 and len(zlib.compress(data)) < len(data) * 0.08
