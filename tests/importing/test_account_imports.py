"""An account export can be imported even if its user may use no model."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation
from chatapp.features.importing import job
from chatapp.features.importing.models import Import
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig
from tests.importing.test_own_account import NOW, export_of
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(job, "folder", lambda: tmp_path / "imports")


def test_agents_without_an_available_model_do_not_stop_an_import(
    alice: User, bob: User, tmp_path: Path
) -> None:
    ensure_first_model()
    say(new_conversation(alice, "Lisbon", NOW), "Where is the ferry?", "At Cais do Sodré.", at=NOW)
    Agent.objects.create(owner=alice, name="Librarian", system_prompt="Cite.", tools=[])
    path = export_of(alice, tmp_path / "alice.zip")
    with zipfile.ZipFile(path) as archive:
        assert any(name.startswith("agents/") for name in archive.namelist())
    # The same happens if no model is connected yet, or bob's groups allow none.
    ModelConfig.objects.update(enabled=False)
    made = job.begin(user=bob, name="alice.zip", chunks=[path.read_bytes()], size_bytes=path.stat().st_size)
    job.import_some(made.pk, 1e9)
    row = Import.objects.get(pk=made.pk)
    assert (row.state, row.error) == ("done", "")
    assert Conversation.objects.filter(user=bob).count() == 1
