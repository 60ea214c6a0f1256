"""Offloads in other conversations are deleted if they contain the forgotten text, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads
from memory.tokens import text_message
from memory.types import ToolResultPart
from tests.forgetting.lives import look_up, read_elsewhere
from tests.forgetting.test_further_copies import forget
from tests.memory_store.rows import new_conversation, say

Clients = Callable[..., Client]
TEACHER = "The violin teacher is called Marguerite."
POLITE = "Let me know if there is anything else I can help with."


@pytest.fixture(autouse=True)
def on_disk(settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def left_in(conversation: Conversation) -> set[str]:
    return {str(pk) for pk in Offload.objects.filter(conversation=conversation).values_list("pk", flat=True)}


@pytest.mark.mechanism("forgetting.offloads")
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_only_offloads_elsewhere_that_contain_the_text_are_deleted(
    alice: User, api_client: Clients, what: str
) -> None:
    home = new_conversation(alice)
    said, _ = say(home, TEACHER, "Noted.")
    elsewhere = read_elsewhere(alice, [said.pk]).conversation
    [result] = say(elsewhere, "", role="tool")
    parts = [{"type": "tool_result", "call_id": "looked up", "name": "memory_search", "text": TEACHER}]
    Message.objects.filter(pk=result.pk).update(parent=elsewhere.messages.get(position=1), parts=parts)
    kept = ConversationOffloads().offload_tool_result(
        str(elsewhere.pk), ToolResultPart("1", "http_fetch", "line 1: value 37")
    )
    look_up(elsewhere, f"user: {TEACHER}\n")
    ConversationOffloads().offload_context(str(elsewhere.pk), [text_message("tool", TEACHER)])
    assert len(left_in(elsewhere)) == 3
    ids = {"message": said.pk, "conversation": home.pk}
    receipt = forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert left_in(elsewhere) == {kept}
    assert receipt["removed"]["offloaded"] == 2


@pytest.mark.mechanism("forgetting.offloads")
def test_a_closing_line_shared_with_other_answers_affects_no_other_conversation(
    alice: User, api_client: Clients
) -> None:
    home = new_conversation(alice, "Bread")
    say(home, "How long does rye dough rest?", f"Overnight. {POLITE}")
    say(new_conversation(alice, "Stars"), "How far is Sirius?", f"8.6 light years. {POLITE}")
    answer = forget(api_client(alice), conversation_id=str(home.pk))
    assert answer["proposal"] is None
    assert not {"offloaded", "requests"} & answer["removed"].keys()
