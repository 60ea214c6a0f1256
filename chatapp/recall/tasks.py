"""Background tasks of the search index."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from celery import shared_task
from django.conf import settings

from agents.errors import ModelError
from chatapp.operations.database.work_budget import IN_WORKER, YIELD_STEP_S, Pace
from chatapp.operations.workers.jobs import wake_for_many, wake_worker
from chatapp.recall import embedding
from chatapp.recall.actions.indexing import index_conversation as index_turns
from chatapp.recall.actions.indexing import index_some
from chatapp.recall.actions.reanalysis import reanalyse_some
from chatapp.recall.selectors.reanalysis import indexes_to_reanalyse
from chatapp.recall.selectors.unindexed import (
    has_more_to_index,
    overlooked_conversations,
    owner_of,
    users_without_vectors,
)

log = logging.getLogger(__name__)


@shared_task
def index_conversation(conversation_id: str) -> None:
    index_turns(UUID(conversation_id), IN_WORKER)
    if has_more_to_index(UUID(conversation_id)):  # behind other work, so that others do not wait
        wake_worker("chatapp.recall.tasks.index_conversation", conversation_id)
    if settings.EMBEDDINGS_MODEL and (user_id := owner_of(conversation_id)):
        wake_worker("chatapp.recall.tasks.embed_index", str(user_id))


@shared_task
def index_conversations(conversation_ids: list[str]) -> None:
    index_together(conversation_ids, IN_WORKER)


def index_together(conversation_ids: Sequence[str], pace: Pace) -> None:
    """Index a few messages of each conversation; queue longer ones again, behind other work."""
    waiting = deque(UUID(conversation_id) for conversation_id in conversation_ids)

    def step() -> bool:
        for conversation_id in index_some(waiting):
            wake_worker("chatapp.recall.tasks.index_conversation", str(conversation_id))
        return not waiting

    pace.sleep(YIELD_STEP_S)  # an answer may be about to start
    pace.work(step)
    for left in waiting:  # behind other work, so that others do not wait
        wake_for_many("chatapp.recall.tasks.index_conversations", str(left))
    if settings.EMBEDDINGS_MODEL:
        left_ids = set(map(str, waiting))
        for user_id in {owner_of(each) for each in conversation_ids if each not in left_ids} - {None}:
            wake_worker("chatapp.recall.tasks.embed_index", str(user_id))


@shared_task
def reanalyse_index(owner_id: str) -> None:
    reanalyse_some(int(owner_id))


@shared_task
def embed_index(user_id: str) -> None:
    try:
        embedding.embed_index(UUID(user_id))
    except ModelError as error:
        log.warning("The embeddings endpoint did not respond (%s); the sweep will retry.", error)


def wake_waiting(now: datetime) -> None:
    for conversation_id in overlooked_conversations(now):
        wake_worker("chatapp.recall.tasks.index_conversation", str(conversation_id))
    for owner_id in indexes_to_reanalyse():
        wake_worker("chatapp.recall.tasks.reanalyse_index", str(owner_id))
    for user_id in users_without_vectors(settings.EMBEDDINGS_MODEL):
        wake_worker("chatapp.recall.tasks.embed_index", str(user_id))
