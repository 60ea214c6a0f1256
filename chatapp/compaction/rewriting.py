"""Write summaries anew whose text became an extract because something they cover was forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from agents.summarise import SummaryResult, summarise
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import CompactionLease
from chatapp.compaction.work import CompactionWork, learned_from, read_work
from chatapp.conversations.models import Conversation
from chatapp.long_term import files
from chatapp.long_term.actions.entries import rewrite_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.providers.actions import record_background_calls
from chatapp.providers.chat_models import chat_model_for
from chatapp.providers.usage import CallUsage, priced_call
from memory.consolidation import bare_line
from memory.hygiene import add_sentences

log = logging.getLogger(__name__)

GIVEN_UP_AFTER = timedelta(hours=1)


def waiting_rewrites(now: datetime) -> Sequence[UUID]:
    """Return the summaries to be written anew, those that others are built on first."""
    rows = Compaction.objects.filter(rewrite_since__lt=now - timedelta(seconds=5))
    return list(rows.order_by("conversation", "last_position").values_list("pk", flat=True)[:20])


def rewrite_summary(compaction_id: UUID) -> None:
    """The worker's. Safe to call twice: a summary that changed meanwhile is left alone."""
    row = Compaction.objects.filter(pk=compaction_id, rewrite_since__isnull=False).first()
    if row is None or row.status != Compaction.Status.DONE:
        Compaction.objects.filter(pk=compaction_id).update(rewrite_since=None)
        return
    if (
        row.previous_id
        and Compaction.objects.filter(pk=row.previous_id, rewrite_since__isnull=False).exists()
    ):
        return  # the sweep comes to it again
    try:
        work = read_work(CompactionLease(row.pk, row.fence))
        done = asyncio.run(_summarise(work))
    except Exception:
        log.exception("Summary %s could not be written anew; its extract stays.", compaction_id)
        _stop_trying(row, clock.now())
        return
    calls = [priced_call(work.config, usage, "compaction") for usage in done.usages]
    if _store(row, work, done, calls):
        files.sweep_unwritten()


async def _summarise(work: CompactionWork) -> SummaryResult:
    return await summarise(
        chat_model_for(work.config),
        work.messages,
        previous=work.previous,
        policy=work.policy,
        window=work.rules.budget,
        calibration=work.rules.calibration,
        keep=work.row.keep_hint,
    )


@transaction.atomic
def _store(row: Compaction, work: CompactionWork, done: SummaryResult, calls: Sequence[CallUsage]) -> bool:
    """Return whether it was stored. Not where something was forgotten since it was read: then it is written again."""
    conversation = Conversation.objects.select_for_update().filter(pk=row.conversation_id).first()
    held = Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since, summary=row.summary)
    if conversation is None:
        return False
    record_background_calls(User(pk=conversation.user_id), conversation.pk, calls)
    changes = {} if done.fallback_reason else {"summary": done.text, "summary_tokens": done.tokens}
    is_stored = held.update(
        rewrite_since=None,
        fallback_reason=done.fallback_reason or "",
        tokens_after=done.tokens if changes else F("tokens_after"),
        **changes,
    )
    if is_stored and changes:
        _learn_again(row, work, done)
    return bool(is_stored)


def _learn_again(row: Compaction, work: CompactionWork, done: SummaryResult) -> None:
    """What the new summary says and its entry does not. What a user wrote in the entry stays."""
    entry = MemoryEntry.objects.select_for_update().filter(compaction=row).first()
    learned = learned_from(work, done).text
    if entry is None or not any(map(bare_line, learned.splitlines())):
        return
    rewrite_entry(entry, add_sentences(entry.text, "", learned), MemoryEntry.Author(entry.author))


@transaction.atomic
def _stop_trying(row: Compaction, now: datetime) -> None:
    """Once it has failed for long, the extract stays."""
    if row.rewrite_since is not None and row.rewrite_since < now - GIVEN_UP_AFTER:
        Compaction.objects.filter(pk=row.pk, rewrite_since=row.rewrite_since).update(rewrite_since=None)
