"""How an answer ended, and the sentence that says so to its user."""

from __future__ import annotations

from agents.types import FinishReason
from chatapp.runs.models import Run

KEPT = "what was written so far is kept. Press Continue to go on."
NOTHING_KEPT = "your message is stored. Press Retry, or choose another model."
CUT_SENTENCES: dict[FinishReason, str] = {
    "length": f"The model reached its output limit before the answer was finished; {KEPT}",
    "content_filter": "The provider's content filter ended the answer; what was written so far is kept.",
    "bound": f"The model wrote more than one answer may hold and was stopped; {KEPT}",
    # Continue is not offered: the gap may be in the middle, and continuing from the end would keep it.
    "lost": "A part of the answer was lost on its way from the provider; what arrived is kept. Press Retry for all.",
    "unknown_reason": f"The provider ended the answer for a reason of its own; {KEPT}",
}
ONLY_THOUGHTS: dict[FinishReason, str] = {
    "length": "The model used up its output limit on reasoning and wrote no answer; your message is stored. Ask for "
    "something shorter, or choose another model.",
    "content_filter": "The provider's content filter withheld the answer; your message is stored. Rephrase it, or "
    "choose another model.",
    "bound": "The model went on reasoning until it was stopped and wrote no answer; your message is stored. Press "
    "Retry, or choose another model.",
    "lost": "The answer was lost on its way from the provider; your message is stored. Press Retry.",
    "unknown_reason": "The provider ended the answer before it began, for a reason of its own; your message is stored. "
    "Press Retry, or choose another model.",
}
NO_ANSWER = "The model answered with nothing; your message is stored. Press Retry."


def describe_end(reason: FinishReason, *, has_text: bool, time_limit: str) -> tuple[str, str, str]:
    """Return (run status, error category, error sentence), the last two empty for no error. For an answer that was cut
    at a limit, the run is complete; `time_limit` is the sentence about a time limit that was reached, else empty."""
    if not has_text:
        category = reason if reason in ONLY_THOUGHTS else "bad_response"
        return Run.Status.FAILED, category, ONLY_THOUGHTS.get(reason, NO_ANSWER)
    if time_limit:
        return Run.Status.COMPLETE, "bound", time_limit
    if reason in CUT_SENTENCES:
        return Run.Status.COMPLETE, reason, CUT_SENTENCES[reason]
    return Run.Status.COMPLETE, "", ""
