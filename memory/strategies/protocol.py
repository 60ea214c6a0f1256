"""The decisions of a strategy, and the values they are based on.

Strategies do not know `ContextPolicy`, because a policy names one of them: it passes what they need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory.budget import TokenBudget
from memory.summaries.summary_prompts import Hint, summary_input
from memory.tokens import UNCALIBRATED, Calibration, text_message
from memory.types import Message


@dataclass(frozen=True, slots=True)
class SummaryForm:
    """What a policy says about its summaries. If `prompt`, `template` or `schema` is empty, the built-in one is used.

    `known` are statements from memory that the model may report as superseded (`memory.long_term.superseding`).
    """

    max_tokens: int
    prompt: str = ""
    template: str = ""
    schema: Mapping[str, Any] | None = None
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One call of the summariser: a chunk of the span, to be merged with the summary of what came before it."""

    transcript: str
    prompt: str
    max_output_tokens: int
    known: str = ""

    def messages(self, previous: str) -> tuple[Message, Message]:
        """Return system prompt and user message. `previous` is the answer to the previous request, or the checkpoint's
        summary for the first."""
        return text_message("system", self.prompt), text_message(
            "user", summary_input(previous, self.transcript, self.known)
        )


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """`reason` completes "The summary was not used: …"."""

    reason: str


class CutReplay(Protocol):
    """A view at one of its requests. A strategy may move its beginning forward."""

    @property
    def has_too_many_turns(self) -> bool: ...

    @property
    def is_over_limit(self) -> bool: ...

    @property
    def turn_count(self) -> int: ...

    def drop_older_half(self) -> None:
        """Drop the older half of the turns; do nothing if there is only one."""

    def drop_tool_chains(self) -> bool:
        """Reduce each turn to user text and final reply. Return whether any turn was still whole."""

    def keep_tail(self) -> None:
        """Drop everything but the tail."""


class Strategy(Protocol):
    default_max_turns: int
    """Turns in context if the policy sets no limit; 0 means no limit."""
    writes_summaries: bool
    """Whether a model summarises what leaves the context."""
    waits_for_summary: bool
    """Whether an answer waits for the summary it needs, whatever the policy says about waiting."""
    summarises_steps: bool
    """Whether a tool loop over its budget waits for a summary of its older steps."""
    prepares_ahead: bool
    """Whether the soft trigger prepares the next summary."""

    def plan_cut(self, replay: CutReplay) -> None:
        """Move the cut of a view that has too many turns or exceeds its limit."""

    def summary_cap(self, cap: int, summary_tokens: int) -> int:
        """Return the most tokens of the summary in a view. `cap` is the budget's share for it."""

    def stand_in(self, previous: str, messages: Sequence[Message], max_tokens: int) -> Message:
        """Return the message that replaces `previous` and `messages` in the view until a checkpoint covers them."""

    def draft(self, previous: str, messages: Sequence[Message], max_tokens: int) -> str:
        """Return a summary of both, written without a model."""

    def prompt(self, form: SummaryForm, hint: Hint = "general", keep: str = "") -> str:
        """Return the summariser's system prompt. `keep` is what the user asked to keep."""

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
        """Return the calls that summarise these messages, to be made one after the other, each within the summariser's
        `window`; empty if it is too small for any."""

    def accept(
        self, answer: str, *, source: Sequence[Message], previous: str, form: SummaryForm
    ) -> Summary | Rejected:
        """Return the summariser's answer as it may be stored, or why it is rejected. `source` and `previous` are what
        it summarised."""

    def divider_text(self, message_count: int) -> str:
        """Return the sentence of the event `compact` about the messages that left. The page has one of its own."""
