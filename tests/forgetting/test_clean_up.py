"""The clean-up of idle conversations takes everything but the memory of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings

from chatapp.accounts.models import User
from chatapp.context.models import RequestText
from chatapp.conversations.models import Conversation
from chatapp.files.models import Offload
from chatapp.forgetting.models import Tombstone
from chatapp.forgetting.services import delete_idle_conversations
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.models import StoredClaim
from chatapp.runs.models import ToolCall
from tests.forgetting.lives import SECRET, live
from tests.memory_store.rows import NOW


def test_it_takes_requests_tool_calls_and_offloaded_files_and_leaves_the_memory(alice: User) -> None:
    life = live(alice)
    folder = Path(settings.DATA_DIR) / "offloads" / str(life.conversation.pk)
    assert any(path.is_file() for path in folder.rglob("*"))
    Conversation.objects.filter(pk=life.conversation.pk).update(last_activity_at=NOW - timedelta(days=40))
    assert delete_idle_conversations(now=NOW, days=30) == 1
    assert not folder.exists()
    for model in (RequestText, ToolCall, Offload, StoredClaim):
        assert not model.objects.exists()
    assert SECRET in MemoryEntry.objects.get().text
    assert not Tombstone.objects.exists(), "it is not forgotten, only no longer kept word for word"
