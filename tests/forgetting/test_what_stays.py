"""Forgetting removes a text wherever it is stored, but keeps what other sources say."""

from __future__ import annotations

import pytest
from django.db import transaction

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.files.models import Offload
from chatapp.files.offloads import CONTEXT_FILE, ConversationOffloads
from chatapp.forgetting.services import forget_message, forget_whole_conversation
from chatapp.long_term.actions.entries import add_entry, edit_entry, note_sources, record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from memory.tokens import text_message
from memory.types import ToolResultPart
from tests.forgetting.lives import live
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)

WORK = "I work for Siemens, in the Munich office."
LEARNED = "The user is employed by Siemens, based in Bavaria's capital."
WISH = "Never schedule my meetings before ten o'clock."


def learn(conversation: Conversation, rows: list[Message], text: str) -> MemoryEntry:
    """Return an entry made of all these messages."""
    compaction = finished_compaction(conversation, rows[0].position, summary=text)
    Compaction.objects.filter(pk=compaction.pk).update(last_position=rows[-1].position)
    entry = record_entry(
        compaction=compaction,
        text=text,
        first_message_id=rows[0].pk,
        last_message_id=rows[-1].pk,
        at=NOW,
    )
    assert entry is not None
    return entry


def texts() -> list[str]:
    return list(MemoryEntry.objects.values_list("text", flat=True))


# --- Entries -------------------------------------------------------------------------------------------------


def test_an_entry_keeps_sentences_about_other_messages_of_its_span(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, WORK, "Noted.", "ok thanks", "You are welcome.")
    learn(conversation, rows, LEARNED)
    forget_message(alice, rows[2].pk, now=clock.now())
    assert texts() == [LEARNED]


def test_an_entry_loses_the_sentence_about_a_forgotten_message(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, WORK, "Noted.", "I keep two goats in the garden.", "How lovely.")
    learn(conversation, rows, f"{LEARNED} There are two goats in the garden.")
    forget_message(alice, rows[0].pk, now=clock.now())
    assert texts() == ["There are two goats in the garden."]


def test_an_entry_is_deleted_if_its_span_contains_nothing_else(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, "I have moved to the sea.", "Noted.")
    learn(conversation, rows, "They live at the coast now.")
    forget_message(alice, rows[0].pk, now=clock.now())
    assert texts() == []


def test_text_that_the_user_wrote_in_an_entry_stays_unless_it_is_about_the_message(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, WORK, "Noted.")
    entry = learn(conversation, rows, LEARNED)
    edit_entry(user=alice, entry_id=str(entry.pk), text=f"{LEARNED}\n{WISH}")
    forget_message(alice, rows[0].pk, now=clock.now())
    assert texts() == [WISH]


def test_an_entry_of_another_branch_stays(alice: User) -> None:
    """The entry's span includes the position of the forgotten message, which is on another branch."""
    conversation = new_conversation(alice)
    trunk = conversation.branch
    assert trunk is not None
    [first, _] = say(conversation, "Let us plan the garden.", "Gladly.")
    conversation.branch = Branch.objects.create(conversation=conversation, lineage=[[str(trunk.pk), 1]])
    [aside, _] = say(conversation, WORK, "Noted.")
    conversation.branch = trunk
    [*_, last] = say(conversation, "The fence is painted green.", "How lovely.")
    entry = learn(conversation, [first, last], f"The fence is green. {LEARNED}")
    forget_message(alice, aside.pk, now=clock.now())
    entry.refresh_from_db()
    assert entry.text == f"The fence is green. {LEARNED}"
    assert entry.revision == 1


def said_again(entry: MemoryEntry, rows: list[Message]) -> None:
    """Record the span of these messages as another source of the entry."""
    with transaction.atomic():
        note_sources(
            entry_ids=[str(entry.pk)],
            conversation=rows[0].conversation,
            first_message_id=rows[0].pk,
            last_message_id=rows[-1].pk,
            at=NOW,
        )


def outlive_its_chat(user: User, text: str) -> MemoryEntry:
    """Return an entry whose conversation was deleted by retention."""
    gone = new_conversation(user)
    entry = learn(gone, say(gone, text, "Noted."), text)
    gone.delete()
    entry.refresh_from_db()
    assert entry.conversation is None
    return entry


DENTIST = "My dentist is Dr Quillfeather in Elm Street 14."


@pytest.mark.parametrize("what", ["message", "conversation"])
def test_an_entry_is_forgotten_with_its_last_source(alice: User, what: str) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, DENTIST, "Noted.")
    said_again(outlive_its_chat(alice, DENTIST), rows)
    if what == "message":
        forget_message(alice, rows[0].pk, now=clock.now())
    else:
        forget_whole_conversation(alice, conversation.pk, now=clock.now())
    assert texts() == []


def test_an_entry_stays_if_another_conversation_is_its_source(alice: User) -> None:
    entry = outlive_its_chat(alice, DENTIST)
    first, second = new_conversation(alice), new_conversation(alice)
    for conversation in (first, second):
        said_again(entry, say(conversation, DENTIST, "Noted."))
    forget_whole_conversation(alice, first.pk, now=clock.now())
    assert texts() == [DENTIST]


def test_an_entry_that_the_user_added_outlives_a_conversation_that_repeats_it(alice: User) -> None:
    entry = add_entry(user=alice, text=DENTIST, now=clock.now())
    conversation = new_conversation(alice)
    said_again(entry, say(conversation, "See above.", "Noted."))
    forget_whole_conversation(alice, conversation.pk, now=clock.now())
    assert texts() == [DENTIST]


# --- Answers -------------------------------------------------------------------------------------------------


def test_imported_answers_that_follow_a_forgotten_one_stay(alice: User) -> None:
    said = ["First of harbours.", "Then of bread.", "And then of goats."]
    messages = [ImportedMessage("user", "Tell me."), *(ImportedMessage("assistant", one) for one in said)]
    conversation = import_conversation(user=alice, messages=messages, now=clock.now(), title="Old")
    forget_message(alice, conversation.messages.get(position=1).pk, now=clock.now())
    left = conversation.messages.order_by("position").values_list("parts", flat=True)
    assert [bool(parts) for parts in left] == [True, False, True, True]


# --- Offloads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["another message", "what it was looked up for"])
def test_an_offloaded_result_stays_unless_its_call_is_forgotten(alice: User, what: str) -> None:
    life = live(alice)
    home = str(life.conversation.pk)
    stored = Offload.objects.get()
    unnamed = {"search": "Line 4", "memory_search": "Line 5", "http_fetch": "Line 6"}
    for tool, text in unnamed.items():
        ConversationOffloads().offload_tool_result(home, ToolResultPart("9", tool, text))
    ConversationOffloads().offload_context(home, [text_message("user", "And now?")])
    chosen = life.messages[4] if what == "another message" else life.told
    forget_message(alice, chosen.pk, now=clock.now())
    assert not Offload.objects.filter(name=CONTEXT_FILE).exists()
    assert set(Offload.objects.values_list("tool_name", flat=True)) == {"search", "http_fetch"}
    assert Offload.objects.filter(pk=stored.pk).exists() == (what == "another message")


def test_an_offload_of_a_forgotten_call_is_deleted_even_if_no_result_names_it(alice: User) -> None:
    """The result was offloaded later, to make room in the context."""
    life = live(alice)
    home = str(life.conversation.pk)
    call = life.conversation.runs.get().tool_calls.get()
    call.name, call.result = "http_fetch", [{**call.result[0], "name": "http_fetch"}]
    call.save()
    ConversationOffloads().offload_tool_result(home, ToolResultPart("1", "http_fetch", "Line 7"))
    forget_message(alice, life.answer.pk, now=clock.now())
    assert not Offload.objects.exists()
