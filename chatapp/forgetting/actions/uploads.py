"""Deletes an uploaded file, with everything that answers have read of it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from agents.tools.attached_files import FilesRead
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_attachment, delete_offloads_of_tools
from chatapp.files.models import Attachment
from chatapp.forgetting.actions.collecting import Chosen, Work, begin_forgetting, hold, lock_reached
from chatapp.forgetting.actions.deletion import Leftovers
from chatapp.forgetting.actions.derived_texts import request_texts
from chatapp.forgetting.actions.forget import forget_derived
from chatapp.forgetting.selectors.derived import reading_conversations
from chatapp.forgetting.selectors.repeats import Repeats, find_repeats
from chatapp.long_term.models import MemoryEntry
from chatapp.runs.models import RunSource, ToolCall


def delete_upload(*, user: User, file: Attachment, now: datetime) -> Leftovers:
    """Delete a file, the tool results read from it, and copies of those. Answers that describe it in their own words
    stay. Return what is left on disk."""
    if not _can_be_read(file):  # usually removed from a draft, so no answer has to be stopped
        delete_attachment(file)
        return Leftovers((file.sha256,))
    while True:
        returned = _returned_of(file)
        # Lists of files and the calls that read the file contain its id.
        repeats = find_repeats(user.pk, (), answered=[str(file.pk), *returned])
        with transaction.atomic():
            begin_forgetting(user.pk)
            work = _lock_readers(user, file, repeats, now)
            if _returned_of(file) == returned:
                return _delete(file, work)
            # The file was read again meanwhile: search for copies of that result, too.
            transaction.set_rollback(True)


def _returned_of(file: Attachment) -> list[str]:
    """Return the texts that tools read from the file."""
    calls = ToolCall.objects.filter(
        name=FilesRead.spec.name, run__user=file.user_id, arguments__contains=str(file.pk)
    )
    results = calls.order_by("pk").values_list("result", flat=True)
    return [text for result in results for text in message_values.results_in(result)]


def _can_be_read(file: Attachment) -> bool:
    was_read = RunSource.objects.filter(source_id=file.pk)
    return file.messages.exists() or file.folders.exists() or was_read.exists()


def _lock_readers(user: User, file: Attachment, repeats: Repeats, now: datetime) -> Work:
    """Lock the conversations that show the file or whose answers read it, and stop answers that may be reading it."""
    showing = Message.objects.filter(attachments=file).values("conversation")
    homes = Conversation.objects.filter(Q(pk__in=showing) | Q(folder__in=file.folders.all()), user=user)
    work = Work(Chosen(user, now), repeats, also_gone=frozenset({file.pk}))
    work.follow()
    shown_in = set(showing.values_list("conversation", flat=True))
    entries = MemoryEntry.objects.filter(pk__in=list(work.derived))
    hold(work, lock_reached(user.pk, work.reached | shown_in | reading_conversations(homes), entries, now))
    return work


def _delete(file: Attachment, work: Work) -> Leftovers:
    homes = [*work.conversations]
    delete_attachment(file)
    forget_derived(work)
    # Stored messages that left the context name the file, and requests may contain shortened results read from it.
    work.files += delete_offloads_of_tools(homes, ())
    request_texts(homes).delete()
    return Leftovers((file.sha256,), tuple(work.files))
