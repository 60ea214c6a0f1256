"""Stores the requests that models are sent, by reference, and deletes texts that only they hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import cache
from uuid import UUID

from django.db import transaction

from agents.manifest import dump_manifest, write_manifest
from agents.references import Sources
from agents.types import Purpose, RequestSent
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.sources import RequestSources, texts_for_requests
from chatapp.operations.errors import LeaseLost
from chatapp.runs.actions.runs import Lease, lock_leased
from chatapp.runs.models import Run
from memory.types import Message


def store_request(
    *,
    lease: Lease,
    n: int,
    purpose: Purpose,
    model_name: str,
    sent: RequestSent,
    stored: Iterable[Message],
    sources: RequestSources,
    tokens: int,
    now: datetime,
) -> None:
    """Store request number `n` of a run; `tokens` as they were estimated.

    `stored` are the messages it was made of, as the database has them: what was sent like that is stored as its
    position. What else repeats one of the `sources` names it. Raises LeaseLost.
    """

    @cache
    def readable() -> Sources:
        run = Run.objects.filter(pk=lease.run_id).first()
        if run is None:
            raise LeaseLost("The conversation was deleted.")
        return Sources(texts_for_requests(run, sources, sent.request.messages))

    manifest, texts = write_manifest(sent, stored, readable)
    with transaction.atomic():
        conversation, run = lock_leased(lease)
        RequestText.objects.bulk_create(
            [
                RequestText(
                    conversation=conversation,
                    sha256=own.text_sha256,
                    source=own.source,
                    content=json.dumps(segments, ensure_ascii=False, separators=(",", ":")),
                )
                for own, segments in texts.items()
            ],
            ignore_conflicts=True,
        )
        SentRequest.objects.create(
            run=run,
            n=n,
            purpose=purpose,
            model_name=model_name,
            sha256=manifest.sha256,
            tokens=tokens,
            manifest=dump_manifest(manifest),
            created_at=now,
        )


def forget_request_texts(
    *, user_id: UUID, conversation_id: UUID | None = None, sources: Collection[str] | None = None
) -> int:
    """Delete the texts only requests hold, so that they show "forgotten" in their place, and return how many.

    Of one conversation, or of all of the user's; of some sources (`system`, `tools`, `summary`, `reminder`, `recall`,
    `hook`, `injected`, `history`, `question`), or of all.
    """
    texts = RequestText.objects.filter(conversation__user_id=user_id)
    if conversation_id is not None:
        texts = texts.filter(conversation_id=conversation_id)
    if sources is not None:
        texts = texts.filter(source__in=list(sources))
    return texts.delete()[0]
