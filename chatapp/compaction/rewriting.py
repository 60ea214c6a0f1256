"""Rewrites summaries that became extracts because something they cover was forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from agents.background.summarise import SummaryResult
from agents.types import TokenUsage
from chatapp.compaction.actions.rewrites import complete_rewrite, end_rewrite, postpone_rewrite
from chatapp.compaction.compactor import ask_for_summary
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import CompactionLease
from chatapp.compaction.work import CompactionWork, learned_from, read_work
from chatapp.long_term import files
from chatapp.operations import clock
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.operations.errors import NotFound
from memory.errors import PolicyError

log = logging.getLogger(__name__)


def waiting_rewrites(now: datetime) -> Sequence[UUID]:
    """Return some of the summaries that are due for a rewrite, longest waiting first. Postponed ones are excluded, so
    that they do not block others."""
    is_due = Q(rewrite_after=None) | Q(rewrite_after__lte=now)
    rows = _rewritable().filter(is_due, rewrite_since__lt=now - timedelta(seconds=5))
    return list(rows.order_by("rewrite_since", "last_position").values_list("pk", flat=True)[:20])


def _rewritable() -> QuerySet[Compaction]:
    """Return the summaries that wait for a rewrite and are not built on another one that does. Those undone or in the
    trash keep waiting, because they may be restored."""
    rows = Compaction.objects.filter(
        rewrite_since__isnull=False, status=Compaction.Status.DONE, conversation__user__isnull=False
    )
    return rows.exclude(previous__rewrite_since__isnull=False, previous__status=Compaction.Status.DONE)


def rewrite_summary(compaction_id: UUID) -> None:
    """Rewrite a summary, in the worker. Safe to call twice: a summary that changed meanwhile is left alone."""
    row = _rewritable().select_related("conversation").filter(pk=compaction_id).first()
    if row is None:
        return
    # Read the count before the messages, so that a forgetting after that rejects the summary.
    forgotten_count = read_forgetting_count(row.conversation.forgetting_keys)
    try:
        work = read_work(CompactionLease(row.pk, row.fence))
    # Its model or policy may be corrected. Until then it must not block other summaries.
    except (NotFound, PolicyError) as error:
        log.warning("Summary %s cannot be rewritten; a later retry is scheduled: %s", compaction_id, error)
        postpone_rewrite(row=row, calls=[], now=clock.now())
        return
    except ValueError:  # none of its messages is left
        log.warning("No messages of summary %s are left; its extract stays.", compaction_id)
        end_rewrite(compaction_id)
        return
    usages: list[TokenUsage] = []
    try:
        done = asyncio.run(ask_for_summary(work, usages=usages))
    except Exception:
        log.exception("Summary %s could not be rewritten; a later retry is scheduled.", compaction_id)
        postpone_rewrite(row=row, calls=work.price_calls(usages), now=clock.now())
        return
    _store(row, work, done, forgotten_count)


def _store(row: Compaction, work: CompactionWork, done: SummaryResult, forgotten_count: int) -> None:
    now = clock.now()
    calls = work.price_calls(done.usages)
    if done.is_transient:
        log.warning("The rewrite of summary %s is postponed: %s.", row.pk, done.fallback_reason)
        postpone_rewrite(row=row, calls=calls, now=now)
        return
    changes: dict[str, object] = {"fallback_reason": done.fallback_reason or ""}
    learned = ""
    if not done.fallback_reason:
        changes |= {"summary": done.text, "summary_tokens": done.tokens, "tokens_after": done.tokens}
        learned = learned_from(work, done).text
    if complete_rewrite(
        row=row, changes=changes, learned=learned, calls=calls, forgotten_count=forgotten_count, now=now
    ):
        files.sweep_unwritten()
