"""Memory and conversation tools: they find and read only the user's own messages and entries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents.tools.protocol import ToolCaller, ToolFailure
from chatapp.context.tools import registry
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.entries import add_entry
from chatapp.long_term.models import MemoryEntry, MemoryPause
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def history(alice):
    said = [ImportedMessage("user", f"filler number {n}") for n in range(6)]
    said[2] = ImportedMessage("user", "The gate code of the cabin is 4711-Q.")
    said[3] = ImportedMessage("assistant", "Noted: the cabin gate opens with 4711-Q.")
    return import_conversation(user=alice, messages=said, now=clock.now(), title="Cabin")


def caller_in(conversation):
    """Return the caller that the loop would pass to tools: for a run of this conversation."""
    new = NewMessage(text="What was the code?")
    send_message(
        user=conversation.user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now()
    )
    run = Run.objects.get(conversation=conversation)
    return ToolCaller(str(conversation.user_id), str(conversation.pk), str(run.pk))


async def use(tool, caller, **arguments):
    return (await registry.BUILT_IN[tool].call(arguments, caller)).text


async def test_a_message_of_another_conversation_can_be_found_and_read(history, alice):
    caller = await in_database(new_chat)(alice)
    found = await use("memory_search", caller, query="gate code of the cabin")
    assert found.splitlines()[1] == "The gate code of the cabin is 4711-Q."
    message_id = found.split("message ")[1].split()[0]
    around = await use("memory_read", caller, message_id=message_id, around=1)
    assert around.splitlines()[1::3] == [
        "filler number 1",
        "The gate code of the cabin is 4711-Q.",
        "Noted: the cabin gate opens with 4711-Q.",
    ]


async def test_a_day_and_an_entry_can_be_read(alice):
    caller = await in_database(new_chat)(alice)
    entry = await MemoryEntry.objects.acreate(
        user=alice, day="2026-03-04", text="Alice moved to Bergen.", created_at=clock.now()
    )
    assert "Alice moved to Bergen." in await use("memory_read", caller, day="2026-03-04")
    assert "Alice moved to Bergen." in await use("memory_read", caller, entry_id=str(entry.pk))
    with pytest.raises(ToolFailure, match="no memory entries for 2026-03-05"):
        await use("memory_read", caller, day="2026-03-05")
    with pytest.raises(ToolFailure, match="exactly one"):
        await use("memory_read", caller, day="2026-03-04", entry_id=str(entry.pk))


async def test_messages_and_entries_of_other_users_cannot_be_found_or_read(history, alice, bob):
    entry = await MemoryEntry.objects.acreate(
        user=alice, day="2026-03-04", text="Alice moved to Bergen.", created_at=clock.now()
    )
    message = await Message.objects.filter(conversation=history).afirst()
    bobs = await in_database(new_chat)(bob)
    assert "4711" not in await use("memory_search", bobs, query="gate code of the cabin")
    for arguments in (
        {"day": "2026-03-04"},
        {"entry_id": str(entry.pk)},
        {"message_id": str(message.pk)},
        {"entry_id": "../x"},
    ):
        with pytest.raises(ToolFailure):
            await use("memory_read", bobs, **arguments)


async def test_turns_of_the_conversation_are_found_best_first(history):
    caller = await in_database(caller_in)(history)
    found = await use("conversation_search", caller, query="gate code cabin")
    assert found.startswith("1. ")
    assert "The gate code of the cabin is 4711-Q." in found.split("2. ")[0]
    assert "What was the code?" in found
    nothing = await use("conversation_search", caller, query="zebra")
    assert nothing == "Nothing in this conversation matches."


async def test_turns_of_a_temporary_conversation_can_be_found_only_within_it(alice):
    def tell_and_ask():
        chat = create_conversation(user=alice, now=clock.now(), temporary=True)
        return chat, caller_in(chat)

    _, caller = await in_database(tell_and_ask)()
    line = await Run.objects.select_related("question").aget(pk=caller.run_id)
    other = await in_database(new_chat)(alice)
    with pytest.raises(ToolFailure):
        await use("memory_read", other, message_id=str(line.question_id))
    assert "What was the code?" in await use("conversation_search", caller, query="code")


def test_a_temporary_conversation_has_no_memory_tools(alice):
    chat = create_conversation(user=alice, now=clock.now(), temporary=True)
    names = {tool.spec.name for tool in registry.tools_for(chat)}
    assert "conversation_search" in names
    assert not names & {"memory_search", "memory_read"}


async def test_a_caller_with_another_users_run_is_refused(history, bob):
    alices = await in_database(caller_in)(history)
    forged = ToolCaller(str(bob.pk), alices.conversation_id, alices.run_id)
    with pytest.raises(ToolFailure):
        await use("conversation_search", forged, query="gate code")


def new_chat(user):
    return caller_in(create_conversation(user=user, now=clock.now()))


async def test_if_memory_is_paused_tools_read_only_this_conversation(history, alice):
    entry = await in_database(add_entry)(user=alice, text="The cabin code is 4711-Q.", now=clock.now())
    message = await Message.objects.aget(conversation=history, position=2)
    caller = await in_database(new_chat)(alice)
    await Conversation.objects.filter(pk=caller.conversation_id).aupdate(memory="paused")
    assert "4711-Q" not in await use("memory_search", caller, query="gate code of the cabin")
    for asked in ({"day": str(entry.day)}, {"entry_id": str(entry.pk)}, {"message_id": str(message.pk)}):
        with pytest.raises(ToolFailure, match="paused"):
            await use("memory_read", caller, **asked)


async def test_messages_sent_during_a_pause_are_found_only_in_their_own_conversation(history, alice):
    began = clock.now() - timedelta(hours=1)
    await MemoryPause.objects.acreate(user=alice, conversation=history, began_at=began)
    caller = await in_database(new_chat)(alice)
    message = await Message.objects.aget(conversation=history, position=2)
    assert "4711-Q" not in await use("memory_search", caller, query="gate code of the cabin")
    assert "4711-Q" not in await use("memory_read", caller, message_id=str(message.pk))
    own = await in_database(caller_in)(history)
    assert "4711-Q" in await use("memory_search", own, query="gate code of the cabin")
