"""Forgetting finds derived text wherever it was copied, and proposes messages that repeat it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from agents.events import Recall, RecalledItem
from agents.tools.protocol import ToolCaller
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.tools.files import _list, _read
from chatapp.context.tools.offloads import _text
from chatapp.conversations.message_values import message_value, text_of
from chatapp.conversations.models import Conversation, Folder, Message
from chatapp.files.attachments import store_upload
from chatapp.files.models import Attachment, Offload
from chatapp.files.offloads import offloader
from chatapp.long_term.actions.entries import note_sources
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.realtime import event_log
from chatapp.runs.models import Run, ToolCall
from memory.types import ToolResultPart
from tests.forgetting.everywhere import files_with, tables_with
from tests.forgetting.lives import (
    KEPT,
    SAID,
    SECRET,
    Life,
    live,
    look_up,
    read_elsewhere,
    send_request,
    tell_recalled,
)
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

Clients = Callable[..., Client]


def forget(client: Client, **wish: str) -> dict:
    answer = client.post("/api/v1/memory/forget", json.dumps(wish), content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.mechanism("forgetting.derived")
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_a_derived_entry_is_removed_from_where_it_was_recalled(
    alice: User, api_client: Clients, what: str
) -> None:
    """The other run recalled the entry, not its source message, and its request contains the whole entry."""
    life = live(alice)
    run = read_elsewhere(alice, [life.entry.pk])
    send_request(run, f"2026-11-21\nmemory: {life.entry.text}")
    source = {"kind": "entry", "entry_id": str(life.entry.pk)}
    item = RecalledItem(source=source, tokens=9, preview=life.entry.text)
    home = Conversation.objects.get(pk=run.conversation_id)
    fact = Recall(conversation_id=str(home.pk), run_id=str(run.pk), at=NOW, items=[item])
    event_log.append(home, fact, run=run)
    ids = {"message": life.told.pk, "conversation": life.conversation.pk}
    forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert tables_with(SECRET) == []


def say_again(life: Life) -> Message:
    """Repeat the entry's text in another conversation, as one more source of the entry, and return the message."""
    again = new_conversation(life.user, at=NOW + timedelta(days=2))
    said, last = say(again, f"As I told you: {SAID} And bread is cheap.", "Indeed.")
    note_sources(
        entry_ids=[str(life.entry.pk)],
        conversation=again,
        first_message_id=said.pk,
        last_message_id=last.pk,
        at=NOW,
    )
    return said


@pytest.mark.mechanism("forgetting.proposals")
def test_forgetting_an_entry_removes_its_sentences_from_all_its_sources(
    alice: User, api_client: Clients
) -> None:
    life = live(alice)
    said = say_again(life)
    MemoryEntry.objects.filter(pk=life.entry.pk).update(text=f"- {SAID}")
    said.parts = [{"type": "text", "text": f"{SAID} And bread is cheap."}]
    said.save()
    forget(api_client(alice), entry_id=str(life.entry.pk))
    said.refresh_from_db()
    life.told.refresh_from_db()
    assert said.parts == [{"type": "text", "text": "And bread is cheap."}]
    assert life.told.parts == []


@pytest.mark.mechanism("forgetting.proposals")
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_a_repetition_in_another_conversation_is_proposed(
    alice: User, api_client: Clients, what: str
) -> None:
    life = live(alice)
    said = say_again(life)
    ids = {"message": life.told.pk, "conversation": life.conversation.pk}
    answer = forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert str(said.pk) in [item["id"] for item in answer["proposal"]["items"]]


@pytest.mark.mechanism("forgetting.proposals")
def test_a_repetition_is_proposed_even_if_its_entry_is_deleted(alice: User, api_client: Clients) -> None:
    life = live(alice)
    said = say_again(life)
    life.entry.text = SAID
    life.entry.save()
    answer = forget(api_client(alice), message_id=str(life.told.pk))
    assert not MemoryEntry.objects.filter(pk=life.entry.pk).exists()
    assert str(said.pk) in [item["id"] for item in answer["proposal"]["items"]]


def test_the_error_of_a_failed_consolidation_loses_the_text(alice: User, api_client: Clients) -> None:
    life = live(alice)
    refusal = f"The model failed (invalid): 400. You sent: {SAID}"
    Consolidation.objects.create(user=alice, status="failed", error=refusal, created_at=NOW)
    forget(api_client(alice), message_id=str(life.told.pk))
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.derived")
def test_an_answer_is_removed_from_where_it_was_recalled_with_its_conversation(
    alice: User, api_client: Clients
) -> None:
    conversation = new_conversation(alice)
    _, answer = say(conversation, "Invent a code for the gate.", f"Take {SECRET}-7731 for it.")
    run = read_elsewhere(alice, [answer.pk])
    recalled = f"2026-11-21\nassistant: […] Take {SECRET}-7731 for it. […]"
    send_request(run, recalled)
    tell_recalled(run, answer)
    look_up(run.conversation, recalled)
    forget(api_client(alice), conversation_id=str(conversation.pk))
    assert tables_with(SECRET) == []
    assert not Offload.objects.filter(conversation=run.conversation).exists()


def answer_by_run(question: Message, answer: Message) -> Run:
    return Run.objects.create(
        conversation=question.conversation,
        user=question.user,
        question=question,
        answer=answer,
        status="complete",
        created_at=NOW,
    )


def read_again(conversation: Conversation, reference: str) -> None:
    """Store a later run of the conversation that reads an offload but does not mention it in its answer."""
    run, caller = answer_later(conversation)
    store_result(run, "offloaded_page", _text(caller, reference))


def answer_later(conversation: Conversation) -> tuple[Run, ToolCaller]:
    run = answer_by_run(*say(conversation, "Go on.", "I do."))
    return run, ToolCaller(str(run.user_id), str(conversation.pk), str(run.pk))


def store_result(
    run: Run, tool: str, text: str, arguments: dict | None = None, *, call_id: str = "again"
) -> None:
    assert SECRET in text
    ToolCall.objects.create(
        run=run,
        step=1,
        ordinal=run.tool_calls.count() + 1,
        call_id=call_id,
        name=tool,
        arguments=json.dumps(arguments or {}),
        state="done",
        is_idempotent=True,
        result=[{"type": "tool_result", "call_id": call_id, "name": tool, "text": text}],
        requested_at=NOW,
    )


@pytest.mark.mechanism("forgetting.derived")
def test_a_message_that_left_the_context_is_removed_from_where_it_was_read(
    alice: User, api_client: Clients
) -> None:
    told, _ = say(new_conversation(alice), SAID, "Noted.")
    offloader().offload_context(str(told.conversation_id), [message_value(told)])
    read_again(told.conversation, "context")
    forget(api_client(alice), message_id=str(told.pk))
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.derived")
def test_an_offloaded_result_is_removed_from_where_it_was_read_with_its_question(
    alice: User, api_client: Clients
) -> None:
    told, answer = say(new_conversation(alice), "Look up the code of the gate.", "I have.")
    answer_by_run(told, answer)
    look_up(told.conversation, f"{SECRET}-7731")
    read_again(told.conversation, str(Offload.objects.get(conversation=told.conversation).pk))
    forget(api_client(alice), message_id=str(told.pk))
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.derived")
@pytest.mark.parametrize("tool", ["files_list", "files_read"])
def test_a_file_is_removed_from_where_it_was_read_with_the_message_that_showed_it(
    alice: User, api_client: Clients, tool: str
) -> None:
    told, _ = say(new_conversation(alice), "Keep this file.", "Kept.")
    file = store_upload(user=alice, name=f"{SECRET}.txt", content=SAID.encode())
    file.messages.add(told)
    run, caller = answer_later(told.conversation)
    text = _list(caller)[0].name if tool == "files_list" else _read(caller, str(file.pk)).data.decode()
    store_result(run, tool, text)
    forget(api_client(alice), message_id=str(told.pk))
    assert tables_with(SECRET) == []


def read_file(conversation: Conversation, file: Attachment) -> Run:
    """Store a later run of the conversation that lists the files and reads this one; its answer does not mention it."""
    run, caller = answer_later(conversation)
    store_result(run, "files_list", f"{file.pk}: {_list(caller)[0].name}", call_id="list")
    text = _read(caller, str(file.pk)).data.decode()
    store_result(run, "files_read", text, {"file_id": str(file.pk)})
    [told] = say(conversation, "", role="tool")
    told.parent_id = run.answer_id
    told.parts = run.tool_calls.get(name="files_read").result
    told.save()
    send_request(run, text)
    return run


@pytest.mark.mechanism("forgetting.derived")
@pytest.mark.parametrize("place", ["message", "folder"])
def test_a_deleted_file_is_removed_from_where_it_was_read(
    alice: User, api_client: Clients, place: str
) -> None:
    of_other_tests = set(files_with(SECRET))
    told, _ = say(new_conversation(alice), "Keep this file.", "Kept.")
    home = told.conversation
    file = store_upload(user=alice, name=f"{SECRET}.txt", content=f"{SAID} {KEPT}".encode())
    if place == "folder":
        home.folder = Folder.objects.create(user=alice, name="Garden", created_at=NOW)
        home.save()
        file.folders.add(home.folder)
    else:
        file.messages.add(told)
    run = read_file(home, file)
    summary = finished_compaction(home, summary=f"The file says that the favourite colour is {SECRET}.")
    *_, last = home.messages.order_by("position")
    Compaction.objects.filter(pk=summary.pk).update(last_position=last.position, message_count=last.position)
    offloader().offload_context(str(home.pk), [message_value(told), message_value(last)])
    offloader().offload_tool_result(
        str(home.pk), ToolResultPart(call_id="files_read", name="files_read", text=SAID)
    )
    assert api_client(alice).delete(f"/api/v1/files/{file.pk}").status_code == 204
    assert tables_with(SECRET) == []
    assert set(files_with(SECRET)) <= of_other_tests
    assert text_of(Message.objects.get(pk=run.answer_id).parts) == "I do."


@pytest.mark.mechanism("forgetting.derived")
def test_deleting_a_file_keeps_what_was_read_from_another_file(alice: User, api_client: Clients) -> None:
    """The other file was read in another conversation, whose messages stay as well."""
    gone = store_upload(user=alice, name=f"{SECRET}.txt", content=SAID.encode())
    kept = store_upload(user=alice, name=f"{SECRET}-2.txt", content=f"{SAID} {KEPT}".encode())
    for file in (gone, kept):
        told, _ = say(new_conversation(alice), SAID, "Kept.")
        file.messages.add(told)
        run = read_file(told.conversation, file)
    api_client(alice).delete(f"/api/v1/files/{gone.pk}")
    assert [call.result[0]["text"] for call in run.tool_calls.filter(name="files_read")] == [f"{SAID} {KEPT}"]
    told.refresh_from_db()
    assert text_of(told.parts) == SAID


def test_an_answer_that_may_be_reading_a_deleted_file_is_stopped(alice: User, api_client: Clients) -> None:
    told, _ = say(new_conversation(alice), "Keep this file.", "Kept.")
    file = store_upload(user=alice, name="a.txt", content=SAID.encode())
    file.messages.add(told)
    run, _ = answer_later(told.conversation)
    Run.objects.filter(pk=run.pk).update(status="running", lease_expires_at=NOW)
    api_client(alice).delete(f"/api/v1/files/{file.pk}")
    run.refresh_from_db()
    assert run.status == "interrupted"


def test_restoring_a_conversation_does_not_restore_text_of_a_deleted_file(
    alice: User, api_client: Clients
) -> None:
    told, _ = say(new_conversation(alice), "Keep these files.", "Kept.")
    gone, kept = (
        store_upload(user=alice, name=f"{SECRET}-{n}.txt", content=f"{SAID} {n}".encode()) for n in (1, 2)
    )
    elsewhere, _ = say(new_conversation(alice), "Once more.", "Kept.")
    for file in (gone, kept):
        file.messages.add(told, elsewhere)
    read_gone, read_kept = read_file(told.conversation, gone), read_file(told.conversation, kept)
    client = api_client(alice)
    assert client.post(f"/api/v1/conversations/{told.conversation_id}/trash").status_code == 204
    assert client.delete(f"/api/v1/files/{gone.pk}").status_code == 204
    assert client.post(f"/api/v1/trash/{told.conversation_id}/restore").status_code == 200
    assert SAID not in str([call.result for call in read_gone.tool_calls.all()])
    assert SAID in str([call.result for call in read_kept.tool_calls.all()])


def test_answers_that_cannot_read_a_deleted_file_continue(alice: User, api_client: Clients) -> None:
    """The answer is in another conversation than the deleted files: one of a draft, one of a message."""
    elsewhere, _ = say(new_conversation(alice), "Go on without it.", "I do.")
    run, _ = answer_later(elsewhere.conversation)
    Run.objects.filter(pk=run.pk).update(status="running", lease_expires_at=NOW)
    told, _ = say(new_conversation(alice), "Keep this file.", "Kept.")
    draft, shown = (store_upload(user=alice, name=f"{n}.txt", content=f"{SAID} {n}".encode()) for n in (1, 2))
    shown.messages.add(told)
    for file in (draft, shown):
        assert api_client(alice).delete(f"/api/v1/files/{file.pk}").status_code == 204
    run.refresh_from_db()
    assert run.status == "running"
