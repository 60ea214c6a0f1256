"""Stores results too large for a context, for their conversation's agent and user to read later.

A file is stored before its row. The sweep deletes files without a row.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from django.conf import settings
from django.utils.module_loading import import_string

from agents.libraries import Library
from agents.tools.offloaded import CONTEXT_REFERENCE
from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.files.actions import delete_offloads, record_offload
from chatapp.files.images import EXTENSIONS, clean_image
from chatapp.files.models import Offload
from chatapp.files.object_store import BucketStore, DiskStore, ObjectStore, failures
from chatapp.files.selectors import known_offload_names, offload_of
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.schema_version import database_made_at
from chatapp.operations.errors import NotFound, Unavailable
from memory.protocols import Offloader
from memory.types import Message, ToolResultPart

if TYPE_CHECKING:
    from obstore import store as bucket_stores
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Store
else:
    bucket_stores = Library("obstore.store")

log = logging.getLogger(__name__)

CONTEXT_FILE = "context.jsonl"
PAGE_CHARS = 20_000
SWEEP_AFTER = timedelta(hours=1)
"""Longer than the time between storing a file and storing its row."""
RETRIES: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
"""Bounded, because a tool's result waits for the store."""


def lines_of_context(text: str) -> Iterator[tuple[str, str]]:
    """Yield (message id, line) from the text of a context file, without lines that a crash left incomplete."""
    for line in text.split("\n"):
        with contextlib.suppress(ValueError):
            yield json.loads(line)["id"], line


def object_store() -> ObjectStore:
    """Return the store that the settings select."""
    if settings.S3_BUCKET:
        return BucketStore(
            _bucket(
                settings.S3_BUCKET,
                settings.S3_ENDPOINT_URL,
                settings.S3_REGION,
                settings.S3_ACCESS_KEY_ID,
                settings.S3_SECRET_ACCESS_KEY,
            )
        )
    return DiskStore(Path(settings.DATA_DIR) / "offloads")


@lru_cache(maxsize=4)
def _bucket(bucket: str, endpoint: str, region: str, key_id: str, secret: str) -> S3Store:
    """Return the bucket. Without a key, use the machine's credentials (AWS_… variables, a role)."""
    config: S3Config = {"region": region}
    if endpoint:
        config["endpoint"] = endpoint
    if key_id:
        config["access_key_id"], config["secret_access_key"] = key_id, secret
    # The library refuses plain HTTP unless it is allowed.
    options: ClientConfig = {"allow_http": endpoint.startswith("http://"), "timeout": "30s"}
    return bucket_stores.S3Store(
        bucket, prefix="offloads", config=config, client_options=options, retry_config=RETRIES
    )


def probe_store() -> None:
    """Write, read and delete an object. Raise one of `object_store.failures()`."""
    store, path, content = object_store(), f"probe-{new_id()}", b"doctor"
    store.write(path, content)
    if store.read(path) != content:
        raise OSError("what was written is not what is read")
    store.delete(path)


def offloader() -> Offloader:
    """Return the store that OFFLOADER names: ConversationOffloads, or an operator's own implementation."""
    named: type[Offloader] = import_string(settings.OFFLOADER)
    return named()


class ConversationOffloads:
    """Implements `memory.protocols.Offloader`: references are row ids. Blocks on disk, bucket and database."""

    def offload_context(self, conversation_id: str, messages: Sequence[Message]) -> str:
        """Append one line of JSON per message. Return the reference, the same each time."""
        lines = "".join(json.dumps(_as_line(message), ensure_ascii=False) + "\n" for message in messages)
        content, owner, store = lines.encode(), parse_id(conversation_id), object_store()
        name = _name_of_context(owner)
        # Store the bytes first: a crash in between leaves a file that the sweep finds, but no row without a file.
        store.append(_path(owner, name), content)
        row = _record(
            Offload(
                conversation_id=owner,
                kind=Offload.Kind.CONTEXT,
                name=name,
                mime_type="application/jsonl",
                size_bytes=len(content),
                created_at=clock.now(),
            )
        )
        if row.name != name:
            # Another worker has created the row meanwhile.
            store.append(_path(owner, row.name), content)
            store.delete(_path(owner, name))
        return str(row.pk)

    def offload_tool_result(self, conversation_id: str, result: ToolResultPart) -> str:
        owner = parse_id(conversation_id)
        # A tool's text may contain a lone surrogate.
        content = result.text.encode("utf-8", "replace")
        # Derive the id from call and content, or each run without room for an old result would store it again.
        told = result.call_id.encode("utf-8", "replace") + b"\0" + content
        key = uuid5(owner, hashlib.sha256(told).hexdigest())
        return str(_record(write_result(owner, content, result.name, key)).pk)

    def offload_image(self, conversation_id: str, content: bytes, tool_name: str = "") -> str:
        """Store an image, encoded again like an upload. Raise InvalidInput or TooLarge."""
        image, owner = clean_image(content, settings.MAX_IMAGE_PIXELS), parse_id(conversation_id)
        name = f"data/{hashlib.sha256(image.content).hexdigest()}.{EXTENSIONS[image.mime_type]}"
        # The name is the hash, so that an image that a tool returns again takes no more room.
        object_store().write(_path(owner, name), image.content)
        row = _record(
            Offload(
                conversation_id=owner,
                kind=Offload.Kind.IMAGE,
                name=name,
                tool_name=tool_name[:100],
                mime_type=image.mime_type,
                size_bytes=len(image.content),
                created_at=clock.now(),
            )
        )
        return str(row.pk)

    def read(self, conversation_id: str, reference: str, *, offset: int = 0, limit: int = PAGE_CHARS) -> str:
        """Return a page of the text, in characters. Raise NotFound."""
        return read_text(offload_of(conversation_id, reference))[offset : offset + limit]

    def discard(self, conversation_id: str, references: Sequence[str]) -> None:
        """Delete rows and files."""
        owner = parse_id(conversation_id)
        names = delete_offloads(
            conversation_id=owner, offload_ids=[parse_id(reference) for reference in references]
        )
        delete_files((owner, name) for name in names)


def _record(new: Offload) -> Offload:
    """Store the row of a file that was written. Raise NotFound if the conversation was deleted meanwhile."""
    try:
        return record_offload(new)
    except NotFound:
        # The conversation's deletion could not delete this file, which was written later.
        delete_folders([new.conversation_id])
        raise


def write_result(
    conversation_id: UUID, content: bytes, tool_name: str, offload_id: UUID | None = None
) -> Offload:
    """Write the file of a tool's whole result, and return its unsaved row."""
    row = Offload(
        pk=offload_id or new_id(),
        conversation_id=conversation_id,
        kind=Offload.Kind.RESULT,
        tool_name=tool_name[:100],
        mime_type="text/plain",
        size_bytes=len(content),
        created_at=clock.now(),
    )
    row.name = f"tool_result-{row.pk}.txt"
    object_store().write(_path(conversation_id, row.name), content)
    return row


def _name_of_context(conversation_id: UUID) -> str:
    """Return the name of the file that messages are appended to. Use a new name if an interrupted forgetting left the
    former file behind."""
    try:
        return offload_of(conversation_id, CONTEXT_REFERENCE).name
    except NotFound:
        is_left = object_store().has_lines(_path(conversation_id, CONTEXT_FILE))
        return f"{new_id()}/{CONTEXT_FILE}" if is_left else CONTEXT_FILE


def kept_ids(conversation_id: UUID) -> frozenset[str]:
    """Return the ids of the messages in the context file; none if no row references it. The file is decisive, because
    a crash may come between writing it and its row."""
    try:
        text = read_content(offload_of(conversation_id, CONTEXT_REFERENCE)).decode("utf-8", "replace")
    except NotFound:
        return frozenset()
    return frozenset(message_id for message_id, _ in lines_of_context(text))


def read_content(row: Offload) -> bytes:
    """Return the content. Raise NotFound, and Unavailable if the store does not respond."""
    return read_file(row.conversation_id, row.name)


def read_file(conversation_id: UUID, name: str) -> bytes:
    """Return the content. Raise NotFound, and Unavailable if the store does not respond."""
    try:
        return object_store().read(_path(conversation_id, name))
    except FileNotFoundError:
        raise NotFound("This offloaded content no longer exists.") from None
    except failures() as error:
        log.exception("Offloaded content could not be read.")
        raise Unavailable("The store for large results is not responding.") from error


def read_text(row: Offload) -> str:
    """Return the text. Raise NotFound, also for an image."""
    if row.kind == Offload.Kind.IMAGE:
        raise NotFound("This is an image: view it instead.")
    return read_content(row).decode("utf-8", "replace")


@contextlib.contextmanager
def _left_to_sweep() -> Iterator[None]:
    """Log errors of the store: the rows are gone, and `sweep_offloads` deletes files without a row."""
    try:
        yield
    except failures():
        log.exception("Files of offloads could not be deleted; the sweep will delete them.")


def delete_files(files: Iterable[tuple[UUID, str]]) -> None:
    """Delete files by conversation and name, after their rows. The sweep deletes those that the store does not."""
    store = object_store()
    with _left_to_sweep():
        for conversation_id, name in files:
            store.delete(_path(conversation_id, name))


def delete_folders(conversation_ids: Iterable[UUID]) -> None:
    """Delete all files of deleted conversations, as `delete_files` does."""
    store = object_store()
    with _left_to_sweep():
        for conversation_id in conversation_ids:
            store.delete_folder(str(conversation_id))


def sweep_offloads(*, now: datetime) -> int:
    """Delete files of deleted conversations, and files without a row. Return their number."""
    store = object_store()
    since, until = database_made_at(), now - SWEEP_AFTER
    # Sort the paths, so that one query per conversation reads its names.
    old = sorted(found.path for found in store.walk() if since <= found.modified_at < until)
    removed = 0
    for conversation_id, names in _names_by_conversation(old):
        known = known_offload_names(conversation_id)
        for name in names:
            # In a bucket, a file that was appended to consists of parts below its name.
            if name not in known and name.rpartition("/")[0] not in known:
                store.delete(_path(conversation_id, name))
                removed += 1
    return removed


def _names_by_conversation(paths: Iterable[str]) -> Iterator[tuple[UUID, list[str]]]:
    """Yield names by conversation, from sorted paths. Skip other folders."""
    for folder, inside in groupby(paths, key=lambda path: path.partition("/")[0]):
        with contextlib.suppress(ValueError):
            yield UUID(folder), [path.partition("/")[2] for path in inside]


def _path(conversation_id: UUID, name: str) -> str:
    return f"{conversation_id}/{name}"


def _as_line(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "position": message.position,
        "role": message.role,
        "at": message.created_at.isoformat() if message.created_at else None,
        "parts": message_values.parts_to_json(message.parts),
    }


def offloaded_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the offloaded files whose content is stored, for the archive of the account."""
    rows = Offload.objects.filter(conversation__user=user).order_by("pk")
    for row in rows.iterator(chunk_size=500):
        try:
            yield f"offloaded/{row.conversation_id}/{row.name}", read_content(row)
        except NotFound:
            continue
