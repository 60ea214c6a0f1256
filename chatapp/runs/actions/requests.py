"""Keeps the requests models are sent, and lets go of the texts that only they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction

from agents.manifest import dump_manifest, write_manifest
from agents.types import Purpose, RequestSent
from chatapp.context.models import RequestText, SentRequest
from chatapp.runs.actions.runs import Lease, lock_held
from memory.types import Message


def store_request(
    *,
    lease: Lease,
    n: int,
    purpose: Purpose,
    model_name: str,
    sent: RequestSent,
    stored: Iterable[Message],
    tokens: int,
    now: datetime,
) -> None:
    """Request number `n` of a run; `tokens` as they were estimated. `stored` are the messages it was made of, as the
    database has them: what was sent like that is kept by its position alone. Raises LeaseLost."""
    manifest, texts = write_manifest(sent, stored)
    with transaction.atomic():
        conversation, run = lock_held(lease)
        RequestText.objects.bulk_create(
            [
                RequestText(
                    conversation=conversation, sha256=own.text_sha256, source=own.source, content=content
                )
                for own, content in texts.items()
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
    """Removes the texts only requests hold, so that they show "forgotten" in their place; how many went.

    Of one conversation, or of all of the user's; of some sources (`system`, `tools`, `summary`, `reminder`, `recall`,
    `hook`, `injected`, `history`, `question`), or of all.
    """
    texts = RequestText.objects.filter(conversation__user_id=user_id)
    if conversation_id is not None:
        texts = texts.filter(conversation_id=conversation_id)
    if sources is not None:
        texts = texts.filter(source__in=list(sources))
    return texts.delete()[0]
