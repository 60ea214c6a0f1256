"""Prevents imports from restoring what is forgotten meanwhile: they skip a forgotten conversation, and end without a
file to retry if their user has everything forgotten."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.dispatch import receiver

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.importing import job
from chatapp.features.importing.formats import palimpsest
from chatapp.features.importing.job_actions import delete_imports, pass_over
from chatapp.features.importing.models import ImportedConversation
from chatapp.features.importing.values import key_of_id
from chatapp.forgetting.actions.forget_all import (
    conversation_forgotten,
    everything_forgotten,
    forgetting_everything,
)


# At the end again, because another import may have been started meanwhile.
@receiver([forgetting_everything, everything_forgotten])
def end_imports(sender: Any, *, user: User, **_: Any) -> None:
    ids = delete_imports(user)
    # If the process dies in between, the sweep deletes the files.
    transaction.on_commit(lambda: job.delete_files(ids))


@receiver(conversation_forgotten)
def pass_conversation_over(sender: Any, *, user: User, conversation: Conversation, **_: Any) -> None:
    came_from = ImportedConversation.objects.filter(conversation=conversation)
    # An export of the user's own account references it by its id.
    own = key_of_id(palimpsest.NAME, str(conversation.pk))
    pass_over(user, [own, *came_from.values_list("source_key", flat=True)])
