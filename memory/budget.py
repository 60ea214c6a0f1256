"""How many input tokens a model call may have, and where the numbers came from.

The floor: `context_size - max_output_tokens - system_reserve` counts as at least 4,000. To reach it, the reserves for
output and system prompt shrink, never the window; a window that cannot hold 4,000 tokens of input and an answer gets
what it can hold. So a small or misconfigured model works, with a warning, and no request exceeds its window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

FLOOR_TOKENS = 4_000
DEFAULT_CONTEXT_SIZE = 128_000
DEFAULT_MAX_OUTPUT_TOKENS = 64_000
DEFAULT_SYSTEM_RESERVE = 4_000

SizeOrigin = Literal["model", "environment", "detected", "default"]


@dataclass(frozen=True, slots=True)
class TokenBudget:
    context_size: int = DEFAULT_CONTEXT_SIZE
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    system_reserve: int = DEFAULT_SYSTEM_RESERVE
    input_limit: int = 0
    """The operator's own limit for the input, to save money in a large window; 0 means none. It has no floor."""

    @property
    def _plain_input(self) -> int:
        return self.context_size - self.max_output_tokens - self.system_reserve

    @property
    def _least_output(self) -> int:
        """Return the tokens that an answer keeps even in a clamped window: an eighth of it."""
        return max(1, min(self.max_output_tokens, self.context_size // 8))

    @property
    def clamped(self) -> bool:
        """Return whether the floor applies. Operators are warned."""
        return self._plain_input < FLOOR_TOKENS

    @property
    def input_tokens(self) -> int:
        """Return the tokens for summary, history, recall, question, and the system prompt beyond its reserve."""
        if self.input_limit:
            return min(self._window_input, self.input_limit)
        return self._window_input

    @property
    def _window_input(self) -> int:
        if not self.clamped:
            return self._plain_input
        return max(1, min(FLOOR_TOKENS, self.context_size - self._least_output))

    @property
    def output_tokens(self) -> int:
        """Return the tokens that are always left for the answer; in a clamped window fewer than configured."""
        if not self.clamped:
            return self.max_output_tokens
        free = self.context_size - self._window_input - self.system_reserve
        return max(1, min(self.max_output_tokens, max(self._least_output, free)))

    @property
    def reserve_tokens(self) -> int:
        """Return the tokens that system prompt and tool schemas may take before they reduce the input."""
        return max(0, self.context_size - self._window_input - self.output_tokens)

    def pressure(self, tokens: int) -> float:
        return tokens / self.input_tokens

    def input_after(self, system_tokens: int) -> int:
        """Return the input tokens left beside a system prompt with tools of this size. May be negative."""
        return self.input_tokens - max(0, system_tokens - self.reserve_tokens)

    def output_for(self, request_tokens: int) -> int:
        """Return the most answer tokens to request beside a request of this size, so that both fit the window.

        If the window is the limit, a tenth of the request is left for the error of its estimate.
        """
        free = self.context_size - request_tokens - request_tokens // 10
        # The output reserved by the budget is free beside any request that fits, so the margin does not reduce it.
        return max(1, min(self.max_output_tokens, max(free, self.output_tokens)))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that one source names for a model; 0 means unknown."""

    context_size: int = 0
    max_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedBudget:
    budget: TokenBudget
    context_size_from: SizeOrigin
    max_output_tokens_from: SizeOrigin

    @property
    def warning(self) -> str | None:
        """Return one sentence for the operator if the sizes leave less than the floor, else None."""
        if not self.budget.clamped:
            return None
        budget = self.budget
        return (
            f"A window of {budget.context_size:,} tokens with {budget.max_output_tokens:,} for output and"
            f" {budget.system_reserve:,} for the system prompt leaves fewer than {FLOOR_TOKENS:,} tokens for input."
            f" {budget.input_tokens:,} input tokens are used, and answers may be limited to"
            f" {budget.output_tokens:,} tokens."
        )


def resolve_budget(
    *,
    model: Sizes = Sizes(),
    environment: Sizes = Sizes(),
    detected: Sizes = Sizes(),
    system_reserve: int = DEFAULT_SYSTEM_RESERVE,
    input_limit: int = 0,
) -> ResolvedBudget:
    """Return the budget with each number from the first source that names it: ModelConfig, environment, detected,
    default."""
    layers: dict[SizeOrigin, Sizes] = {"model": model, "environment": environment, "detected": detected}

    def first(size: Callable[[Sizes], int], default: int) -> tuple[int, SizeOrigin]:
        found = ((size(sizes), origin) for origin, sizes in layers.items() if size(sizes) > 0)
        return next(found, (default, "default"))

    context_size, context_from = first(lambda sizes: sizes.context_size, DEFAULT_CONTEXT_SIZE)
    # At most half, so that the default leaves a small window room for input.
    default_output = min(DEFAULT_MAX_OUTPUT_TOKENS, context_size // 2)
    output, output_from = first(lambda sizes: sizes.max_output_tokens, default_output)
    return ResolvedBudget(
        TokenBudget(context_size, output, system_reserve, input_limit), context_from, output_from
    )
