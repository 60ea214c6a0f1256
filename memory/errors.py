"""Errors of policies, and of requests that cannot fit, raised before any model call."""

from __future__ import annotations


class ContextError(ValueError):
    """A request that no compaction can make fit. `str(error)` is the text for the user."""


class TooLarge(ContextError):
    def __init__(self, what: str, tokens: int, room_tokens: int, advice: str) -> None:
        over = tokens - room_tokens
        super().__init__(
            f"{what} too large: about {tokens:,} tokens, but only {max(room_tokens, 0):,} fit"
            f" ({over:,} too many). {advice}"
        )
        self.tokens = tokens
        self.room_tokens = room_tokens


class QuestionTooLarge(TooLarge):
    def __init__(self, tokens: int, room_tokens: int) -> None:
        super().__init__(
            "Your message is",
            tokens,
            room_tokens,
            "Shorten it, attach less, or choose a model with a larger window.",
        )


class SystemPromptTooLarge(TooLarge):
    """The system prompt and the tool descriptions leave no room for anything else."""

    def __init__(self, tokens: int, room_tokens: int) -> None:
        super().__init__(
            "The system prompt with its tools is",
            tokens,
            room_tokens,
            "Ask the operator to shorten it, or choose a model with a larger window.",
        )


class PolicyError(ValueError):
    """An unknown setting or a value out of range. `field` is its name, `origin` the layer that set it."""

    def __init__(self, field: str, origin: str, problem: str) -> None:
        super().__init__(f"{field} ({origin}): {problem}")
        self.field = field
        self.origin = origin
        self.problem = problem
