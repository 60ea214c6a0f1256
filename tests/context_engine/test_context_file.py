"""`context.jsonl` after a crash during an append, and on a full disk."""

from __future__ import annotations

import resource
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings

from chatapp.accounts.models import User
from chatapp.compaction.left_context import keep_left_context
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import compactions_to_keep
from chatapp.context.tools.branch_view import BranchView
from chatapp.conversations.models import Conversation
from chatapp.files.object_store import DiskStore
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from tests.context_engine.chatting import chatting, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)


@on_a_loop
async def test_a_line_truncated_by_a_crash_does_not_break_the_file(alice: User) -> None:
    async with chatting(alice) as chat:
        row = await chat.compact()
        rows = Compaction.objects.filter(pk=row["id"])
        path = Path(settings.DATA_DIR) / "offloads" / chat.conversation / "context.jsonl"
        await in_database(keep_left_context)(UUID(row["id"]))
        # The file looks like this if the worker is killed, or the power fails, during the append.
        path.write_bytes(path.read_bytes()[:-40])
        await rows.aupdate(context_kept_at=None, finished_at=clock.now() - timedelta(hours=1))
        await in_database(keep_left_context)(UUID(row["id"]))  # the sweep appends the missing line

        # The model's tool and the next compaction can still read the file.
        branch = (await Conversation.objects.select_related("branch").aget(pk=chat.conversation)).branch
        text = path.read_text()
        await in_database(BranchView(branch, {branch.pk: None}).context_lines)(text)
        await rows.aupdate(context_kept_at=None)
        await in_database(keep_left_context)(UUID(row["id"]))
        assert await in_database(compactions_to_keep)(clock.now()) == []


def test_an_append_that_does_not_fit_on_the_disk_fails_and_stores_nothing(tmp_path: Path) -> None:
    store, line = DiskStore(tmp_path), b"x" * 999 + b"\n"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500, limits[1]))  # as on a disk with 1,500 bytes left
    try:
        with pytest.raises(OSError, match="No space left"):
            store.append("a/context.jsonl", line * 3)
        store.append("a/context.jsonl", line)
        assert store.read("a/context.jsonl") == line
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
