"""The file of messages that left the context (chatapp/files/offloads.py, chatapp/forgetting/services.py)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.files import offloads
from chatapp.files.actions import delete_offloads
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads, kept_ids, read_content, sweep_offloads
from chatapp.forgetting import services
from chatapp.operations import clock
from memory.tokens import text_message
from tests.forgetting.everywhere import files_with
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "celadon"


class Killed(BaseException):
    pass


def test_an_interrupted_forgetting_leaves_nothing_in_the_context_file(
    alice: User, monkeypatch: pytest.MonkeyPatch
):
    """If a worker appended to the old file before the sweep deletes it, the new row would keep the forgotten text."""
    conversation = new_conversation(alice)
    told, *_ = say(
        conversation, f"My favourite colour is {SECRET}.", "Noted.", "The ferry leaves at nine.", "It does."
    )
    store, home = ConversationOffloads(), str(conversation.pk)
    store.offload_context(home, [text_message("user", f"My favourite colour is {SECRET}.")])

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(services, "remove_leftovers", die)
        with pytest.raises(Killed):
            services.forget_message(alice, told.pk, now=clock.now())
    assert not Offload.objects.exists(), "the row is gone, and the sweep would take the file"
    store.offload_context(home, [text_message("user", "The ferry leaves at nine.")])
    sweep_offloads(now=clock.now() + timedelta(hours=2))
    assert SECRET not in store.read(home, "context")
    assert [path for path in files_with(SECRET) if "offloads" in path.parts] == []


def test_a_file_stored_again_while_the_former_one_is_deleted_stays(alice: User):
    """Another process may store the same name after a deletion deleted the row and before it deletes the file."""
    conversation = new_conversation(alice)
    store, home = ConversationOffloads(), str(conversation.pk)
    reference = store.offload_context(home, [text_message("user", "The ferry leaves at nine.")])
    names = delete_offloads(conversation_id=conversation.pk, offload_ids=[reference])
    store.offload_context(home, [text_message("user", "It leaves at ten on Sundays.")])
    offloads.delete_files((conversation.pk, name) for name in names)
    assert b"ten on Sundays" in read_content(Offload.objects.get())


def test_a_truncated_line_does_not_break_later_reads_of_the_context_file(alice: User):
    """A crash may leave the last line unfinished. An append must not raise errors in all later reads of the file."""
    conversation = new_conversation(alice)
    store, home = ConversationOffloads(), str(conversation.pk)
    store.offload_context(home, [replace(text_message("user", "The ferry leaves at nine."), id="first")])
    offloads.object_store().append(
        f"{home}/{offloads.CONTEXT_FILE}", b'{"id": "truncated", "position": 1, "par'
    )
    store.offload_context(home, [replace(text_message("user", "It leaves at ten on Sundays."), id="last")])
    assert kept_ids(conversation.pk) == {"first", "last"}
    assert "ten on Sundays" in store.read(home, "context")
