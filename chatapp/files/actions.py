"""Writes the rows of attachments and offloads. `attachments` and `offloads` write the bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.message_values import parts_from_json
from chatapp.conversations.models import Conversation, Folder, Message
from chatapp.files.models import MAX_FILE_NAME_CHARS, Attachment, Offload
from chatapp.files.selectors import known_ids
from chatapp.operations.database.access import lock_rows
from chatapp.operations.errors import Conflict, NotFound
from memory.tokens import estimate_parts


@transaction.atomic
def create_attachment(
    *,
    user: User,
    name: str,
    sha256: str,
    mime_type: str,
    width: int,
    height: int,
    size_bytes: int,
    is_asked_for: bool = False,
) -> Attachment:
    """Store an attachment. `is_asked_for` records it under the `Idempotency-Key` of the request: True for an upload,
    False for the images of a message."""
    row = Attachment.objects.create(
        user=user,
        name=name[:MAX_FILE_NAME_CHARS],
        sha256=sha256,
        mime_type=mime_type,
        width=width,
        height=height,
        size_bytes=size_bytes,
    )
    if is_asked_for:
        record_created_id(row.pk)
    return row


LINKED_AT_ONCE = 100


def link_to_messages(conversation: Conversation, shown: Mapping[int, Collection[UUID]]) -> None:
    """Link files, each once, to the messages of a new conversation that show them. `shown` is by position."""
    links = Attachment.messages.through
    positions = [position for position, ids in shown.items() if ids]
    for first in range(0, len(positions), LINKED_AT_ONCE):
        some = positions[first : first + LINKED_AT_ONCE]
        rows = Message.objects.filter(conversation=conversation, position__in=some)
        links.objects.bulk_create(
            links(attachment_id=file_id, message_id=message_id)
            for message_id, position in rows.values_list("pk", "position")
            for file_id in shown[position]
        )


MAX_FOLDER_FILES = 50
GONE = {"type": "text", "text": "[A file was here. It was deleted.]"}


@transaction.atomic
def delete_attachment(attachment: Attachment) -> None:
    """Delete an attachment, and its parts of messages."""
    showing = Message.objects.filter(attachments=attachment)
    # Lock conversations first, as everywhere: forgetting a message locks its conversation, then deletes its files.
    lock_rows(Conversation.with_unowned.filter(pk__in=showing.values("conversation")))
    for message in showing.select_for_update(of=("self",)).order_by("pk"):
        kept = [part for part in message.parts if part.get("file_id") != str(attachment.pk)]
        message.parts = kept or [GONE]
        message.token_estimate = estimate_parts(parts_from_json(message.parts))
        message.save(update_fields=["parts", "token_estimate"])
    Attachment.objects.filter(pk=attachment.pk).delete()


@transaction.atomic
def put_into_folder(*, folder: Folder, attachment: Attachment) -> None:
    """Make the file available to each conversation in the folder. Raise Conflict if the folder is full."""
    # Lock the folder, or two concurrent calls would each count without the other.
    Folder.objects.select_for_update().get(pk=folder.pk)
    others = folder.files.exclude(pk=attachment.pk)
    if others.count() >= MAX_FOLDER_FILES:
        raise Conflict(f"A folder may have {MAX_FOLDER_FILES} files at most.")
    folder.files.add(attachment)


def take_out_of_folder(*, folder: Folder, attachment: Attachment) -> None:
    """Remove the file from the folder; messages that show the file keep it."""
    folder.files.remove(attachment)


@transaction.atomic
def delete_unused_attachments(chosen: Q) -> list[str]:
    """Delete chosen uploads that no message or folder references. Return the hashes whose bytes may be unused now."""
    # Lock the rows, so that none is linked to a message meanwhile. PostgreSQL cannot lock an outer join's other table.
    unused = Attachment.objects.filter(chosen, messages=None, folders=None).select_for_update(of=("self",))
    hashes = list(unused.values_list("sha256", flat=True))
    unused.delete()
    return hashes


def delete_unshared_attachments(message_ids: Iterable[UUID]) -> tuple[str, ...]:
    """Delete attachments that only these messages show, in the caller's transaction. Return their hashes."""
    ids = list(message_ids)
    links = Attachment.messages.through.objects
    here = links.filter(message__in=ids)
    shown = set(here.values_list("attachment", flat=True))
    if not shown:
        return ()
    # Read only the links of these attachments: the links of all users would take long under the lock.
    elsewhere = links.filter(attachment__in=shown).exclude(message__in=ids)
    own_ids = shown - set(elsewhere.values_list("attachment", flat=True))
    # Other conversations use the files of a folder, too.
    own = Attachment.objects.filter(pk__in=own_ids, folders=None)
    hashes = tuple(own.values_list("sha256", flat=True))
    own.delete()
    here.delete()
    return hashes


@transaction.atomic
def record_offload(new: Offload) -> Offload:
    """Store the row, or return the stored row of its file, found by its name. A context is found by its kind instead
    and grows by the size of the new row; a result gets the time of the new row.

    Raise NotFound if the conversation was deleted meanwhile.
    """
    # With this lock, concurrent appends add up, and a deletion comes before or after all of this.
    if not Conversation.objects.select_for_update().filter(pk=new.conversation_id).exists():
        raise NotFound("The conversation was deleted.")
    # A conversation has one context file, which may have another name by now.
    known = Q(kind=new.kind) if new.kind == Offload.Kind.CONTEXT else Q(name=new.name)
    row = Offload.objects.filter(known, conversation_id=new.conversation_id).first()
    if row is None:
        new.save(force_insert=True)
        return new
    if new.kind == Offload.Kind.CONTEXT:
        row.size_bytes += new.size_bytes
        row.save(update_fields=["size_bytes"])
    elif new.kind == Offload.Kind.RESULT:
        # The time decides which run, and thus which branch, may read the result: the one that gets the reference now.
        row.created_at = new.created_at
        row.save(update_fields=["created_at"])
    return row


@transaction.atomic
def delete_offloads(*, conversation_id: UUID, offload_ids: Iterable[UUID]) -> list[str]:
    """Delete offloads, and return the names of their files, which are unused now."""
    rows = Offload.objects.filter(conversation_id=conversation_id, pk__in=list(offload_ids))
    names = list(rows.values_list("name", flat=True))
    rows.delete()
    return names


def delete_offloads_of_tools(
    conversation_ids: Collection[UUID], tool_names: Collection[str]
) -> list[tuple[UUID, str]]:
    """Delete the results of these tools, and the context files, in these conversations. Return (conversation id, file
    name) of the files that are unused now.

    Call this in a transaction; the sweep appends the remaining messages of the contexts again.
    """
    # A context file holds the messages of all compactions, and nothing can be cut out of it.
    Compaction.objects.filter(conversation_id__in=conversation_ids).update(context_kept_at=None)
    kinds = Q(kind=Offload.Kind.CONTEXT) | Q(tool_name__in=tool_names)
    return _delete_chosen(kinds, conversation_ids)


def delete_stored_results(
    conversation_ids: Collection[UUID],
    tool_names: Collection[str],
    *,
    gone: Iterable[str],
    left: Iterable[str],
) -> list[tuple[UUID, str]]:
    """Delete, in these conversations, the offloads that `gone` refers to, and other results of these tools that `left`
    does not refer to. Return (conversation id, file name) of the files that are unused now.

    Call this in a transaction.
    """
    chosen = Q(pk__in=known_ids(gone)) | (Q(tool_name__in=tool_names) & ~Q(pk__in=known_ids(left)))
    return _delete_chosen(chosen, conversation_ids)


def _delete_chosen(chosen: Q, conversation_ids: Collection[UUID]) -> list[tuple[UUID, str]]:
    rows = Offload.objects.filter(chosen, conversation_id__in=conversation_ids)
    files = list(rows.values_list("conversation_id", "name"))
    if files:
        rows.delete()
    return files
