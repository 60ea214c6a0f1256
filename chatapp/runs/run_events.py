"""Builds the events of a run while it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agents import events
from agents.requests.context import AssembledContext
from chatapp.operations import clock
from chatapp.runs.hooks import Firing

FactT = TypeVar("FactT", bound=events.Fact)
RECALL_TOLD = 20
"""Recalled turns that an event lists. The context inspector shows all of them."""


@dataclass(frozen=True, slots=True)
class RunEvents:
    """Builds the events of one run."""

    conversation_id: str
    run_id: str

    def notice(self, kind: str, text: str) -> events.Fact:
        return self._fact(events.RunNotice, kind=kind, text=text)

    def fired(self, firings: Sequence[Firing]) -> list[events.Fact]:
        return [self._fact(events.HookFired, **firing.facts) for firing in firings]

    def asked(self, context: AssembledContext, recalled: Sequence[events.RecalledItem]) -> list[events.Fact]:
        """Return the events that describe the first request, before it is sent."""
        described = self.context(context, context.parts.total, is_exact=False)
        return [self._recall(recalled), described] if recalled else [described]

    def context(self, context: AssembledContext, used_tokens: int, *, is_exact: bool) -> events.Fact:
        """Return the context event. Its parts add up to `used_tokens`; messages added by a loop count as history."""
        parts, dropped = context.parts, context.view.dropped
        rest = parts.total - parts.history - parts.question
        # Scale them down: a provider may count less than we do, and history must not become negative.
        share = min(1.0, used_tokens / max(1, rest))
        others = {
            name: int(getattr(parts, name) * share)
            for name in ("system", "profile", "tools", "summary", "recall")
        }
        return self._fact(
            events.Context,
            used_tokens=used_tokens,
            budget_tokens=context.budget_tokens,
            limit_tokens=context.limit_tokens,
            parts=events.ContextParts(**others, history=used_tokens - sum(others.values())),
            exact=is_exact,
            left_out=dropped.message_count if dropped else 0,
            left_out_last_position=dropped.last_position if dropped else None,
            left_out_extract=context.view.has_extract,
        )

    def _recall(self, recalled: Sequence[events.RecalledItem]) -> events.Fact:
        return self._fact(
            events.Recall,
            items=list(recalled[:RECALL_TOLD]),
            total_count=len(recalled),
            total_tokens=sum(item.tokens for item in recalled),
        )

    def _fact(self, event: Callable[..., FactT], **fields: object) -> FactT:
        return event(conversation_id=self.conversation_id, run_id=self.run_id, at=clock.now(), **fields)
