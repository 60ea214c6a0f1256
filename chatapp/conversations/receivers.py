"""Locks the rows that refer to a folder, an agent or a model before that is deleted.

Django clears these references in one statement, which locks rows in arbitrary order. All other code locks them in the
order of their keys, so a deletion could deadlock without these receivers. What a deleted agent leaves behind is passed
to a worker.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation, Folder
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.access import lock_rows
from chatapp.operations.workers.jobs import wake_worker
from chatapp.providers.models import ModelConfig
from chatapp.recall.models import SearchOwner


@receiver(pre_delete, sender=Folder)
def lock_conversations_of_folder(sender: Any, instance: Folder, **_: Any) -> None:
    lock_rows(Conversation.with_unowned.filter(folder=instance))


@receiver(pre_delete, sender=ModelConfig)
def lock_conversations_of_model(sender: Any, instance: ModelConfig, **_: Any) -> None:
    lock_rows(Conversation.with_unowned.filter(model=instance))


@receiver(pre_delete, sender=Agent)
def lock_conversations_and_memory_of_agent(sender: Any, instance: Agent, **_: Any) -> None:
    lock_rows(Conversation.with_unowned.filter(Q(agent=instance) | Q(scope=instance)))
    lock_rows(MemoryEntry.objects.filter(scope=instance))
    lock_rows(SearchOwner.objects.filter(scope=instance))
    # Nothing finds the index of its shared memory any more; a worker deletes it.
    wake_worker("chatapp.forgetting.tasks.delete_abandoned_indexes", "")
