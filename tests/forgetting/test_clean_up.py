"""The clean-up of idle conversations deletes everything except their memory entries."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from chatapp.accounts.models import User
from chatapp.context.models import RequestText
from chatapp.conversations.models import TEMPORARY_DAYS, Conversation
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.files.models import Offload
from chatapp.forgetting.models import Tombstone
from chatapp.forgetting.trash.services import clean_up_idle
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.models import StoredClaim
from chatapp.runs.models import ToolCall
from tests.forgetting.lives import SECRET, live
from tests.memory_store.rows import NOW, new_conversation


@pytest.mark.django_db(transaction=True)
def test_the_clean_up_deletes_requests_tool_calls_and_offloads_and_keeps_memory(alice: User) -> None:
    life = live(alice)
    folder = Path(settings.DATA_DIR) / "offloads" / str(life.conversation.pk)
    assert any(path.is_file() for path in folder.rglob("*"))
    Conversation.objects.filter(pk=life.conversation.pk).update(last_activity_at=NOW - timedelta(days=40))
    assert clean_up_idle(now=NOW, days=30, trash_days=0) == 1
    assert not folder.exists()
    for model in (RequestText, ToolCall, Offload, StoredClaim):
        assert not model.objects.exists()
    assert SECRET in MemoryEntry.objects.get().text
    assert not Tombstone.objects.exists(), "it is not forgotten, only no longer kept word for word"


@pytest.mark.parametrize("days", [0, 365])
def test_a_temporary_conversation_expires_even_if_others_are_kept_longer(
    alice: User, settings: Any, days: int
) -> None:
    settings.RETENTION_DAYS = days
    young, idle, kept, pinned, usual = (new_conversation(alice) for _ in range(5))
    Conversation.objects.exclude(pk=usual.pk).update(temporary=True)
    Conversation.objects.update(last_activity_at=NOW - timedelta(days=TEMPORARY_DAYS, seconds=1))
    Conversation.objects.filter(pk=young.pk).update(last_activity_at=NOW - timedelta(days=TEMPORARY_DAYS - 1))
    Conversation.objects.filter(pk=kept.pk).update(kept_since=NOW)
    Conversation.objects.filter(pk=pinned.pk).update(pinned=True)
    young.refresh_from_db()
    assert full_conversation(young)["expires_at"] == (NOW + timedelta(days=1)).isoformat().replace(
        "+00:00", "Z"
    )
    assert clean_up_idle(now=NOW, days=days, trash_days=0) == 1
    assert set(Conversation.objects.all()) == {young, kept, pinned, usual}, f"not {idle.pk}"
