"""Errors of policies, and of requests that cannot fit, raised before any model call."""

from __future__ import annotations

from typing import ClassVar


class ContextError(ValueError):
    """A request that no compaction can make fit. `str(error)` is the text for the user."""


class TooLarge(ContextError):
    what: ClassVar[str]
    advice: ClassVar[str]

    def __init__(self, tokens: int, room_tokens: int) -> None:
        over = tokens - room_tokens
        super().__init__(
            f"{self.what} too large: about {tokens:,} tokens, but only {max(room_tokens, 0):,} fit"
            f" ({over:,} too many). {self.advice}"
        )


class QuestionTooLarge(TooLarge):
    what = "Your message is"
    advice = "Shorten it, attach less, or choose a model with a larger window."


class SystemPromptTooLarge(TooLarge):
    """The system prompt and the tool descriptions leave no room for anything else."""

    what = "The system prompt with its tools is"
    advice = "Ask the operator to shorten it, or choose a model with a larger window."


class PolicyError(ValueError):
    """An unknown setting or a value out of range. `field` is its name, `origin` the layer that set it."""

    def __init__(self, field: str, origin: str, problem: str) -> None:
        super().__init__(f"{field} ({origin}): {problem}")
        self.field = field
        self.origin = origin
        self.problem = problem
