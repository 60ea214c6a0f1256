"""The worker's door: Celery brings a name and an id, everything else is in the rows."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import shared_task
from django.conf import settings

from agents.errors import ModelError
from chatapp.agent_presets.actions import LIST_AGAIN_AFTER
from chatapp.agent_presets.mcp_servers import refresh_server
from chatapp.agent_presets.selectors import servers_to_list
from chatapp.compaction import compactor, left_context
from chatapp.compaction.selectors import compactions_to_keep, quiet_conversations, waiting_compactions
from chatapp.context.tools.registry import local_tools
from chatapp.files.attachments import sweep_files
from chatapp.files.offloads import sweep_offloads
from chatapp.forgetting.purging import purge_deleted
from chatapp.forgetting.removing import delete_abandoned_indexes as go_on_deleting_indexes
from chatapp.forgetting.selectors.removals import due_purges, has_abandoned_index, waiting_removals
from chatapp.forgetting.services import delete_idle_conversations
from chatapp.forgetting.services import remove_rest as go_on_removing
from chatapp.forgetting.wishes import propose_for_message
from chatapp.long_term import consolidation
from chatapp.long_term import files as memory_files
from chatapp.long_term.selectors.profile import waiting_consolidations
from chatapp.operations import clock, jobs
from chatapp.operations.work_budget import BEHIND
from chatapp.recall import embedding
from chatapp.recall.actions.index import index_conversation as index_turns
from chatapp.recall.actions.reanalysis import reanalyse_some
from chatapp.recall.selectors.reanalysis import indexes_to_reanalyse
from chatapp.recall.selectors.unindexed import (
    has_more_to_index,
    overlooked_conversations,
    owner_of,
    users_without_vectors,
)
from chatapp.runs import runner
from chatapp.runs.actions.endings import INTERRUPTED, NOT_STARTED, interrupt_run
from chatapp.runs.actions.hook_calls import close_abandoned_calls
from chatapp.runs.actions.runs import give_last_term
from chatapp.runs.selectors import abandoned_runs, dead_runs

log = logging.getLogger(__name__)

CALL_GIVEN_UP_AFTER_S = 900.0
"""Longer than a call of an MCP server may take, which has at most ten minutes."""


@shared_task
def compact(compaction_id: str) -> None:
    compactor.compact(UUID(compaction_id))


@shared_task
def keep_left_context(compaction_id: str) -> None:
    left_context.keep_left_context(UUID(compaction_id))


@shared_task
def plan_compaction(conversation_id: str) -> None:
    compactor.plan_compaction(UUID(conversation_id))


@shared_task
def summarise_rest(conversation_id: str) -> None:
    compactor.summarise_rest(UUID(conversation_id))


@shared_task
def index_conversation(conversation_id: str) -> None:
    index_turns(UUID(conversation_id), BEHIND)
    if has_more_to_index(UUID(conversation_id)):  # behind what others wait for
        jobs.wake_worker("index_conversation", conversation_id)
    if settings.EMBEDDINGS_MODEL and (user_id := owner_of(conversation_id)):
        jobs.wake_worker("embed_index", str(user_id))


@shared_task
def reanalyse_index(owner_id: str) -> None:
    reanalyse_some(int(owner_id))


@shared_task
def embed_index(user_id: str) -> None:
    try:
        embedding.embed_index(UUID(user_id))
    except ModelError as error:
        log.warning("The embeddings endpoint does not answer (%s); the sweep tries again.", error)


@shared_task
def propose_forgetting(message_id: str) -> None:
    propose_for_message(UUID(message_id))


@shared_task
def purge(mark_id: str) -> None:
    purge_deleted(int(mark_id))


@shared_task
def remove_rest(removal_id: str) -> None:
    go_on_removing(int(removal_id), now=clock.now())


@shared_task
def delete_abandoned_indexes(_: str) -> None:
    if not go_on_deleting_indexes(BEHIND):
        jobs.wake_worker("delete_abandoned_indexes", "")


@shared_task
def consolidate(consolidation_id: str) -> None:
    consolidation.consolidate(UUID(consolidation_id))


@shared_task
def consolidate_due() -> None:
    consolidation.queue_due()


@shared_task
def list_mcp_tools(server_id: str) -> None:
    refresh_server(UUID(server_id))


@shared_task
def sweep() -> None:
    """Everything that was promised by a row and not picked up, or not finished. Quick: what takes long is woken."""
    now = clock.now()
    for run_id, fence in dead_runs(now):
        if not runner.is_answering(run_id) and not give_last_term(run_id=run_id, fence=fence, now=now):
            interrupt_run(run_id=run_id, fence=fence, now=now, message=INTERRUPTED, only_expired=True)
    for run_id, fence in abandoned_runs(now):
        interrupt_run(run_id=run_id, fence=fence, now=now, message=NOT_STARTED)
    close_abandoned_calls(now=now, patience_s=_patience_s)
    for compaction_id in waiting_compactions(now):
        jobs.wake_worker("compact", str(compaction_id))
    for conversation_id in quiet_conversations(now):
        jobs.wake_worker("summarise_rest", str(conversation_id))
    for compaction_id in compactions_to_keep(now - left_context.FIRST_ATTEMPT):
        jobs.wake_worker("keep_left_context", str(compaction_id))
    for conversation_id in overlooked_conversations(now):
        jobs.wake_worker("index_conversation", str(conversation_id))
    for consolidation_id in waiting_consolidations(now):
        jobs.wake_worker("consolidate", str(consolidation_id))
    for server_id in servers_to_list(now - LIST_AGAIN_AFTER):
        jobs.wake_worker("list_mcp_tools", str(server_id))
    for owner_id in indexes_to_reanalyse():
        jobs.wake_worker("reanalyse_index", str(owner_id))
    for user_id in users_without_vectors(settings.EMBEDDINGS_MODEL):
        jobs.wake_worker("embed_index", str(user_id))
    for removal_id in waiting_removals(now):
        jobs.wake_worker("remove_rest", str(removal_id))
    if has_abandoned_index():
        jobs.wake_worker("delete_abandoned_indexes", "")
    memory_files.sweep_unwritten()
    for mark_id in due_purges(now):
        jobs.wake_worker("purge", str(mark_id))


def _patience_s(tool_name: str) -> float:
    """With a tool of the operator's own that takes longer there is more."""
    tool = local_tools().get(tool_name)
    return CALL_GIVEN_UP_AFTER_S + (tool.traits.timeout_s if tool else 0.0)


@shared_task
def clean_up() -> None:
    deleted = delete_idle_conversations(now=clock.now(), days=settings.RETENTION_DAYS)
    sweep_files(now=clock.now())
    sweep_offloads(now=clock.now())
    memory_files.sweep_orphans()
    if deleted:
        log.info("Deleted %d idle conversations.", deleted)
