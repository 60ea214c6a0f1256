"""Stores the requests sent to models, with references instead of texts that other rows hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.db import transaction

from agents import events
from agents.requests.manifest import Manifest, Texts, dump_manifest, write_manifest
from agents.requests.references import Sources
from agents.types import Purpose, RequestSent
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.sources import RequestSources, texts_for_requests
from chatapp.conversations.models import Conversation
from chatapp.operations.database.statements import insert_rows
from chatapp.operations.errors import LeaseLost
from chatapp.realtime import event_log
from chatapp.runs.actions.runs import Lease, facts_are_recorded, lock_leased
from chatapp.runs.models import Run, RunSource
from memory.types import Message


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request that was sent: number `n` of its run, with `tokens` as estimated.

    `stored` are the messages it was made of, as in the database. Messages sent unchanged are stored as their positions.
    Other texts that repeat one of the `sources` are stored as references.
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
    """A request with its manifest and the texts to store."""

    request: NewRequest
    manifest: Manifest
    texts: Texts


def write_request(*, lease: Lease, request: NewRequest) -> WrittenRequest:
    """Return a request in the form in which it is stored, by reference. Raise LeaseLost."""

    @cache
    def readable() -> Sources:
        sent = request.sent.request.messages
        try:
            return Sources(texts_for_requests(lease.run_id, lease.answer_id, request.sources, sent))
        except Run.DoesNotExist:
            raise LeaseLost("The conversation was deleted.") from None

    return WrittenRequest(request, *write_manifest(request.sent, request.stored, readable))


def store_request(*, lease: Lease, request: NewRequest | WrittenRequest, now: datetime) -> None:
    """Store a request of a run. Raise LeaseLost, e.g. if a text that it may repeat was forgotten: that ends the run."""
    # Write it before the transaction: finding what a request repeats takes long, and on SQLite all writers would wait.
    written = _written(lease, request)
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        _insert(conversation, run, written, now)


def record_first_request(
    *,
    lease: Lease,
    request: NewRequest | WrittenRequest | None,
    facts: Sequence[events.Fact],
    recalled: Sequence[RunSource] = (),
    now: datetime,
) -> None:
    """Store together the first request, the events that describe it, and the recalled sources, which forgetting then
    follows. Until then, any forgetting ends the run. Raise LeaseLost."""
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


def first_request_is_recorded(
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
    # A text of an earlier request of the conversation is already stored.
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
