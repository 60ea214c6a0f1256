"""What was offloaded in other chats goes where it says what is forgotten, and only there."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from agents.events import Recall, RecalledItem
from chatapp.accounts.models import User
from chatapp.context.models import RequestText
from chatapp.conversations.models import Conversation
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.realtime import event_log
from memory.types import ToolResultPart
from tests.forgetting.test_further_copies import forget
from tests.memory_store.rows import NOW, new_conversation, say

Clients = Callable[..., Client]
TEACHER = "The violin teacher is called Marguerite."
POLITE = "Let me know if there is anything else I can help with."
LOG = "line 1: value 37\nline 2: value 74\n"


@pytest.fixture(autouse=True)
def on_disk(settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def offload(conversation: Conversation, text: str) -> str:
    return ConversationOffloads().offload_tool_result(
        str(conversation.pk), ToolResultPart("1", "http_fetch", text)
    )


def left_in(conversation: Conversation) -> set[str]:
    return {str(pk) for pk in Offload.objects.filter(conversation=conversation).values_list("pk", flat=True)}


def recalled(conversation: Conversation, text: str) -> None:
    content = json.dumps({"parts": [{"type": "text", "text": f"2026-11-20\n{text}"}]})
    RequestText.objects.create(conversation=conversation, sha256="1" * 64, source="recall", content=content)


@pytest.mark.mechanism("forgetting.offloads")
def test_what_does_not_say_it_stays_where_another_line_of_an_entry_was_recalled(
    alice: User, api_client: Clients
) -> None:
    """The two share a word: the entry may be made of the message."""
    home = new_conversation(alice)
    bought, _ = say(home, "I bought fish for Tom on Monday.", "Nice.")
    entry = MemoryEntry.objects.create(
        user=alice,
        conversation=home,
        day=NOW.date(),
        created_at=NOW,
        text=f"- {TEACHER}\n- She likes fish soup.",
    )
    elsewhere = new_conversation(alice)
    item = RecalledItem(source={"kind": "entry", "entry_id": str(entry.pk)}, tokens=9, preview=TEACHER)
    event_log.append(elsewhere, Recall(conversation_id=str(elsewhere.pk), at=NOW, items=[item]))
    kept = {offload(elsewhere, LOG), offload(elsewhere, f"user: {TEACHER}\n")}
    offload(elsewhere, "user: I bought fish for Tom on Monday.\n")
    receipt = forget(api_client(alice), message_id=str(bought.pk))
    assert left_in(elsewhere) == kept
    assert receipt["removed"]["offloaded"] == 1


@pytest.mark.mechanism("forgetting.offloads")
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_what_says_it_goes_and_is_counted(alice: User, api_client: Clients, what: str) -> None:
    home, elsewhere = new_conversation(alice), new_conversation(alice)
    said, _ = say(home, TEACHER, "Noted.")
    recalled(elsewhere, f"user: {TEACHER}")
    kept, _ = offload(elsewhere, LOG), offload(elsewhere, f"user: {TEACHER}\n")
    ids = {"message": said.pk, "conversation": home.pk}
    receipt = forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert left_in(elsewhere) == {kept}
    assert receipt["removed"]["offloaded"] == 1


def test_what_is_offloaded_while_it_is_forgotten_goes(alice: User, api_client: Clients) -> None:
    """Nobody has looked at it: by the clock of who forgets it was written after that began."""
    home, elsewhere = new_conversation(alice), new_conversation(alice)
    said, _ = say(home, TEACHER, "Noted.")
    recalled(elsewhere, f"user: {TEACHER}")
    offload(elsewhere, LOG)
    Offload.objects.update(created_at=clock.now() + timedelta(minutes=1))
    forget(api_client(alice), message_id=str(said.pk))
    assert left_in(elsewhere) == set()


@pytest.mark.mechanism("forgetting.offloads")
def test_a_closing_line_that_other_answers_share_reaches_no_other_chat(
    alice: User, api_client: Clients
) -> None:
    home = new_conversation(alice, "Bread")
    say(home, "How long does rye dough rest?", f"Overnight. {POLITE}")
    say(new_conversation(alice, "Stars"), "How far is Sirius?", f"8.6 light years. {POLITE}")
    elsewhere = new_conversation(alice)
    recalled(elsewhere, f"assistant: 8.6 light years. {POLITE}")
    kept = offload(elsewhere, f"assistant: {POLITE}\n")
    receipt = forget(api_client(alice), conversation_id=str(home.pk))
    assert left_in(elsewhere) == {kept}
    assert RequestText.objects.filter(conversation=elsewhere).exists()
    assert not {"offloaded", "requests"} & receipt["removed"].keys()
