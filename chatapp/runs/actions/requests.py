"""Stores the requests that models are sent, by reference, and deletes texts that only they hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.db import transaction

from agents import events
from agents.manifest import Manifest, Texts, dump_manifest, write_manifest
from agents.references import Sources
from agents.types import Purpose, RequestSent
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.sources import RequestSources, texts_for_requests
from chatapp.conversations.models import Conversation
from chatapp.operations.errors import LeaseLost
from chatapp.operations.statements import insert_rows
from chatapp.realtime import event_log
from chatapp.runs.actions.runs import Lease, facts_are_recorded, lock_leased
from chatapp.runs.models import Run, RunSource
from memory.types import Message


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request that was sent: number `n` of its run, with `tokens` as they were estimated.

    `stored` are the messages it was made of, as the database has them: what was sent like that is stored as its
    position. What else repeats one of the `sources` names it.
    """

    n: int
    purpose: Purpose
    model_name: str
    sent: RequestSent
    stored: Sequence[Message]
    sources: RequestSources
    tokens: int


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request with what of it is stored."""

    request: NewRequest
    manifest: Manifest
    texts: Texts


def write_request(*, lease: Lease, request: NewRequest) -> WrittenRequest:
    """Return a request as it is stored, by reference. Raise LeaseLost."""

    @cache
    def readable() -> Sources:
        sent = request.sent.request.messages
        try:
            return Sources(texts_for_requests(lease.run_id, lease.answer_id, request.sources, sent))
        except Run.DoesNotExist:
            raise LeaseLost("The conversation was deleted.") from None

    return WrittenRequest(request, *write_manifest(request.sent, request.stored, readable))


def store_request(*, lease: Lease, request: NewRequest | WrittenRequest, now: datetime) -> None:
    """Store a request of a run. Raise LeaseLost: forgetting anything that it may repeat ends the run."""
    # Before the transaction: finding what a request repeats takes long, and on SQLite all writers would wait.
    written = _written(lease, request)
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        _insert(conversation, run, written, now)


def record_asked(
    *,
    lease: Lease,
    request: NewRequest | WrittenRequest | None,
    facts: Sequence[events.Fact],
    recalled: Sequence[RunSource] = (),
    now: datetime,
) -> None:
    """Store together what the first call of a model leaves: its request, what it is told to be made of, and what was
    recalled for it, which forgetting follows. Until then forgetting ends the run. Raise LeaseLost."""
    written = None if request is None else _written(lease, request)
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        insert_rows(recalled, on_conflict="DO NOTHING")
        if written is not None:
            _insert(conversation, run, written, now)
        if facts:
            event_log.append(conversation, *facts, run=run)


def request_is_stored(*, lease: Lease, request: NewRequest | WrittenRequest, now: datetime) -> bool:
    n = request.n if isinstance(request, NewRequest) else request.request.n
    return SentRequest.objects.filter(run=lease.run_id, n=n).exists()


def asked_is_recorded(
    *,
    lease: Lease,
    request: NewRequest | WrittenRequest | None,
    facts: Sequence[events.Fact],
    recalled: Sequence[RunSource] = (),
    now: datetime,
) -> bool:
    if request is not None:
        return request_is_stored(lease=lease, request=request, now=now)
    return bool(facts) and facts_are_recorded(lease=lease, facts=facts)


def _written(lease: Lease, request: NewRequest | WrittenRequest) -> WrittenRequest:
    return request if isinstance(request, WrittenRequest) else write_request(lease=lease, request=request)


def _insert(conversation: Conversation, run: Run, written: WrittenRequest, now: datetime) -> None:
    request, manifest = written.request, written.manifest
    kept = [
        RequestText(
            conversation=conversation,
            sha256=own.text_sha256,
            source=own.source,
            content=json.dumps(segments, ensure_ascii=False, separators=(",", ":")),
        )
        for own, segments in written.texts.items()
    ]
    # A text that an earlier request of the conversation has is kept already.
    insert_rows(kept, on_conflict="DO NOTHING")
    insert_rows(
        [
            SentRequest(
                run=run,
                n=request.n,
                purpose=request.purpose,
                model_name=request.model_name,
                sha256=manifest.sha256,
                tokens=request.tokens,
                manifest=dump_manifest(manifest),
                created_at=now,
            )
        ]
    )
