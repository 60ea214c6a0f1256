"""The lease and the result of a compaction, and its event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from agents.events import Compact, CompactState
from chatapp.compaction.models import Compaction
from chatapp.providers.usage import CallUsage
from chatapp.recall.selectors.claims import StatementPlace
from memory.strategies.registry import strategy_named

MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CompactionLease:
    compaction_id: UUID
    fence: int

    @property
    def is_last_attempt(self) -> bool:
        """Return whether earlier workers died during it, so that no model is called again."""
        return self.fence >= MAX_ATTEMPTS


@dataclass(frozen=True, slots=True)
class FinishedSummary:
    """An accepted summary with its costs. `fallback_reason` is set if no model wrote it. If `entry_text` is empty,
    nothing is written to memory."""

    summary: str
    summary_tokens: int
    tokens_after: int
    entry_text: str
    first_message_id: UUID
    last_message_id: UUID
    calls: Sequence[CallUsage]
    fallback_reason: str = ""
    reminder: str = ""
    repeated_entries: Sequence[str] = ()
    """Ids of memory entries that already contain some of it."""
    superseded: Sequence[tuple[StatementPlace, StatementPlace]] = ()
    """Places of outdated statements, each with the place of its replacement."""


def divider_text(row: Compaction) -> str:
    """Return the text of the divider: what happened to the messages before it, and who wrote their summary."""
    count = row.message_count
    if row.strategy == Compaction.CLEARED:
        return f"Context cleared: {count} earlier messages are kept, but no longer in context."
    if row.fallback_reason:
        return f"Earlier context ({count} messages) was shortened to key sentences, word for word."
    return strategy_named(row.strategy).divider_text(count)


def compact_event(row: Compaction, state: str, now: datetime) -> Compact:
    return Compact(
        conversation_id=str(row.conversation_id),
        at=now,
        state=cast(CompactState, state),
        compaction_id=str(row.pk),
        message_count=row.message_count,
        kept_count=row.kept_count,
        strategy=row.strategy,
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
        last_position=row.last_position,
        text=divider_text(row),
        is_extract=bool(row.fallback_reason),
    )
