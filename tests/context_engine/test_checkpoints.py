"""Checkpoints over the REST API: undo, branches, a change of model, concurrent requests and failures."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from chatapp.accounts.models import User
from chatapp.compaction import compactor
from chatapp.compaction.compactor import compact, queue_next_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.planning import find_emergency_span, load_end
from chatapp.conversations.message_values import parts_to_json
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import UNEXPECTED
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig, Usage
from chatapp.realtime.event_log import read_after
from tests.context_engine.chatting import chatting, make_model, on_a_loop
from tests.memory.histories import call, result
from tests.memory_store.rows import new_conversation, say
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.mechanism("ours.undo")
@on_a_loop
async def test_an_undo_restores_the_request_byte_for_byte_and_a_redo_restores_the_summary(
    alice: User,
) -> None:
    async with chatting(alice) as chat:
        before = await chat.model_input()
        row = await chat.compact()
        compacted = await chat.model_input()
        assert len(compacted) < len(before)
        undone = await chat.post(f"compactions/{row['id']}/undo")
        assert undone.json()["status"] == "undone"
        assert await chat.model_input() == before
        redone = await chat.post(f"compactions/{row['id']}/redo")
        assert redone.json()["status"] == "done"
        assert await chat.model_input() == compacted


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.undo-recall")
@on_a_loop
async def test_the_memory_entry_of_an_undone_compaction_does_not_change_recall(alice: User) -> None:
    """Only the compaction and its undo happen between the two requests."""
    questions = ("Which code has note 3?", "Which codes has the choir?", "What of the harbour had word7?")
    async with chatting(alice, count=400, context_size=16_000, max_output_tokens=2_000) as chat:
        before = [await chat.model_input(question) for question in questions]
        assert all(b"<recalled>" in request for request in before)
        row = await chat.compact()
        assert await MemoryEntry.objects.acount() == 1
        compacted = [await chat.model_input(question) for question in questions]
        await chat.post(f"compactions/{row['id']}/undo")
        assert [await chat.model_input(question) for question in questions] == before
        await chat.post(f"compactions/{row['id']}/redo")
        assert [await chat.model_input(question) for question in questions] == compacted
        assert compacted != before


@pytest.mark.mechanism("memory.edited-summary")
@on_a_loop
async def test_a_users_edit_of_a_summary_is_searchable_until_the_summary_is_undone(alice: User) -> None:
    question = "Which code has note 3?"
    async with chatting(alice, count=400, context_size=16_000, max_output_tokens=2_000) as chat:

        async def found() -> list[str]:
            answer = await chat.program.get("memory/search", q="heliotrope")
            return [item["text"] for item in answer.json()["items"]]

        before = await chat.model_input(question)
        row = await chat.compact()
        summary = f"{row['summary']}\n- The choir rehearses in Heliotrope Hall."
        path = f"conversations/{chat.conversation}/compactions/{row['id']}"
        assert (await chat.program.patch(path, summary=summary)).status_code == 200
        [text] = await found()
        assert text.endswith("The choir rehearses in Heliotrope Hall.")
        entry = await MemoryEntry.objects.aget()
        assert entry.text.count("Heliotrope") == 1
        earlier = (await chat.program.get(f"memory/entries/{entry.pk}/history")).json()["items"]
        assert ["Heliotrope" in item["text"] for item in earlier] == [True, False]
        await chat.post(f"compactions/{row['id']}/undo")
        assert await found() == []
        assert await chat.model_input(question) == before
        await chat.post(f"compactions/{row['id']}/redo")
        assert await found() == [text]


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.preview")
@on_a_loop
async def test_a_preview_reports_which_messages_would_leave_and_changes_nothing(alice: User) -> None:
    async with chatting(alice) as chat:
        before = await chat.model_input()
        seen = (await chat.post("compact", preview=True)).json()
        assert (seen["message_count"], seen["kept_count"]) == (50, 10)
        assert "QX-00" in seen["summary"], "a draft that no model wrote"
        assert seen["tokens_after"] < seen["tokens_before"]
        assert await chat.model_input() == before
        assert await chat.compactions() == []
        assert not chat.server.requests
        row = await chat.compact()
        assert row["last_position"] == seen["last_position"]


@pytest.mark.sqlite
@pytest.mark.mechanism("fim.load", "fim.summary-reaches-model")
@on_a_loop
async def test_the_summary_reaches_the_model_in_every_later_call(alice: User) -> None:
    server = ModelServer(summary_default=says("They keep notes about seven places. QX-00001."))
    async with chatting(alice, server=server) as chat:
        await chat.compact()
        for question in ("First?", "Second?"):
            await chat.ask(question)
        for request in server.requests_of("chat"):
            assert "They keep notes about seven places." in request.messages[1]["content"]
            assert request.messages[0]["role"] == "system"
        last = server.requests_of("chat")[-1].messages
        assert [message["content"] for message in last].count("Second?") == 1
        assert last[-1]["content"] == "Second?"


@pytest.mark.mechanism("ours.one-checkpoint")
@on_a_loop
async def test_concurrent_requests_and_workers_make_one_checkpoint_one_call_and_one_entry(
    alice: User,
) -> None:
    async with chatting(alice) as chat:
        asked = await asyncio.gather(*(chat.post("compact") for _ in range(4)))
        assert sorted(answer.status_code for answer in asked) == [200, 409, 409, 409]
        row_id = next(answer.json()["id"] for answer in asked if answer.status_code == 200)
        await asyncio.gather(*(in_database(compact)(UUID(row_id)) for _ in range(3)))
        [row] = await chat.compactions()
        assert (row["id"], row["status"]) == (row_id, "done")
        assert len(chat.server.requests_of("summary")) == 1
        assert await MemoryEntry.objects.acount() == 1


@pytest.mark.sqlite
@pytest.mark.mechanism("fim.summary-fallback")
@on_a_loop
async def test_a_failed_summary_model_is_reported_and_not_called_again(alice: User) -> None:
    server = ModelServer(summary_default=ERRORS["server"]())
    async with chatting(
        alice, count=400, server=server, context_size=16_000, max_output_tokens=2_000
    ) as chat:
        await chat.ask("Which code has note 3?")
        row = await chat.work()
        assert row["status"] == "done"
        assert "an internal error" in row["fallback_reason"]
        assert "QX-00" in row["summary"]
        assert row["is_extract"]
        events = await in_database(read_after)(UUID(chat.conversation), 0)
        [divider] = [one for one in events if one["type"] == "compact" and one["state"] == "done"]
        assert (divider["is_extract"], "by AI" in divider["text"]) == (True, False)
        calls = len(server.requests_of("summary"))
        assert await in_database(queue_next_compaction)(UUID(chat.conversation), is_early=True) is None
        await chat.ask("And note 5?")
        assert len(server.requests_of("summary")) == calls
        told = server.requests_of("chat")[-1].messages[1]["content"]
        assert ("An extract of" in told, "Summary of" in told) == (True, False)
        assert await Compaction.objects.acount() == 1


@pytest.mark.sqlite
@pytest.mark.mechanism("cowagent.overflow-memory")
@on_a_loop
async def test_messages_dropped_in_an_emergency_are_summarised_to_memory_and_stay_stored(
    alice: User,
) -> None:
    with ModelServer(window=4_000) as refusing:
        async with chatting(alice, count=200, context_size=128_000, max_output_tokens=4_000) as chat:
            await ModelConfig.objects.filter(name="Main").aupdate(base_url=refusing.base_url)
            answer = await chat.ask()
            assert answer["message"]["status"] == "complete"
            refused, sent = refusing.requests_of("chat")
            assert len(sent.messages) < len(refused.messages) // 2
            assert sent.messages[-1]["content"] == "And now?"
            row = await chat.work()
            assert row["status"] == "done"
            entry = await MemoryEntry.objects.aget(compaction_id=row["id"])
            assert "QX-" in entry.text
            assert await Message.objects.acount() == 202


def looked_up(user: User, *, turns: int) -> Conversation:
    """Return a conversation with the strategy `turns`, and a tool call with a long result in each turn."""
    ensure_first_model()
    conversation = new_conversation(user)
    chain = [call("1").parts, result("1", "A line of the result. " * 60).parts]
    texts = [(f"Question {turn}?", "", "", f"Answer {turn}.") for turn in range(turns)]
    rows = say(conversation, *(text for turn in texts for text in turn))
    for at, row in enumerate(rows):
        row.role = ("user", "assistant", "tool", "assistant")[at % 4]
        if at % 4 in (1, 2):
            row.parts, row.token_estimate = parts_to_json(chain[at % 4 - 1]), 400
    Message.objects.bulk_update(rows, ["role", "parts", "token_estimate"])
    Conversation.objects.filter(pk=conversation.pk).update(context_policy={"strategy": "turns"})
    conversation.refresh_from_db()
    return conversation


@pytest.mark.sqlite
def test_an_emergency_that_shortens_turns_but_drops_none_has_no_span(alice: User) -> None:
    loaded = load_end(looked_up(alice, turns=4))
    sent = loaded.assemble().shrunk(None)
    assert sent is not None
    assert len(sent.view.history) < len(loaded.inputs.messages), "tool calls and results of older turns"
    assert {f"Question {turn}?" for turn in range(4)} <= {each.text for each in sent.view.history}
    assert find_emergency_span(loaded, sent) is None


@pytest.mark.sqlite
def test_an_emergency_span_covers_the_dropped_messages_and_none_that_were_sent(alice: User) -> None:
    loaded = load_end(looked_up(alice, turns=12))
    sent = loaded.assemble().shrunk(None)
    assert sent is not None
    first_sent = sent.view.history[0].position
    assert first_sent is not None
    assert len(sent.view.history) < 48 - first_sent, "turns that stayed were shortened"
    row = find_emergency_span(loaded, sent)
    assert row is not None
    assert (row.first_position, row.last_position) == (0, first_sent - 1)
    assert (row.message_count, row.kept_count) == (first_sent, 48 - first_sent)


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.refit")
@on_a_loop
async def test_switching_to_a_small_model_and_back_shows_the_original_messages_again(alice: User) -> None:
    async with chatting(alice, count=120, padding=30, context_size=128_000) as chat:
        small = await in_database(make_model)(
            chat.server, name="Small", context_size=8_000, max_output_tokens=1_000
        )
        large = await chat.model_input()
        await chat.program.patch(f"conversations/{chat.conversation}", model=str(small.pk))
        assert len(await chat.model_input()) < len(large) // 2
        assert await in_database(queue_next_compaction)(UUID(chat.conversation)) is not None
        await chat.work()
        assert (await chat.see())["compaction"] is not None
        await chat.program.patch(f"conversations/{chat.conversation}", model=None)
        assert await chat.model_input() == large
        again = await chat.see(model=str(small.pk))
        assert again["compaction"]["id"] == (await chat.compactions())[0]["id"]


@pytest.mark.mechanism("ours.branches")
@on_a_loop
async def test_a_branch_shares_its_ancestors_checkpoints_but_not_text_beyond_its_fork(
    alice: User,
) -> None:
    async with chatting(alice) as chat:
        await Message.objects.filter(position=40).aupdate(
            parts=[{"type": "text", "text": "The password is heliotrope."}]
        )
        row = await chat.compact()
        assert row["last_position"] >= 40

        await edit(chat, position=56, text="Another question")
        assert (await chat.see())["compaction"]["id"] == row["id"], "made before the fork, so it is shared"

        await edit(chat, position=20, text="Quite another question")
        seen = await chat.see("What is the password?")
        assert seen["compaction"] is None
        assert "heliotrope" not in json.dumps(seen["messages"])
        assert "Another question" not in json.dumps(chat.server.requests_of("chat")[-1].messages)


@pytest.mark.mechanism("ours.sibling-summary")
@on_a_loop
async def test_a_summary_made_in_one_branch_is_used_by_its_sibling(alice: User) -> None:
    """A summary belongs to the branch of its last message, which both siblings see."""
    async with chatting(alice) as chat:
        await edit(chat, position=56, text="One way to go on")
        row = await chat.compact()
        assert row["last_position"] < 56
        assert (await chat.see())["compaction"]["id"] == row["id"]
        await edit(chat, position=56, text="Another way to go on")
        assert (await chat.see())["compaction"]["id"] == row["id"]
        assert len(chat.server.requests_of("summary")) == 1


async def edit(chat, *, position: int, text: str) -> None:  # type: ignore[no-untyped-def]
    message = await Message.objects.aget(
        conversation_id=chat.conversation, position=position, role="user", branch__lineage=[]
    )
    answer = await chat.program.patch(
        f"conversations/{chat.conversation}/messages/{message.pk}", content=text
    )
    assert answer.status_code == 200, answer.content


@pytest.mark.sqlite
@pytest.mark.mechanism("agentscope.read-back", "cowagent.clear-search")
@on_a_loop
async def test_a_cleared_context_is_not_sent_but_search_still_finds_it(alice: User) -> None:
    async with chatting(alice) as chat:
        cleared = await chat.post("context/clear")
        assert cleared.status_code == 200
        assert "QX-00007" not in (await chat.model_input("Hello again")).decode()
        found = await chat.program.get("memory/search", q="QX-00007")
        assert "QX-00007" in found.json()["items"][0]["text"]
        assert await Message.objects.acount() == 60


@pytest.mark.mechanism("fim.done-card", "holmes.cost", "ours.ledger")
@on_a_loop
async def test_summaries_are_in_the_ledger_and_in_the_usage_of_the_next_answer(alice: User) -> None:
    server = ModelServer(
        summary_default=Behaviour(text="They keep notes with codes QX.", prompt_tokens=1_500)
    )
    async with chatting(alice, server=server) as chat:
        row = await chat.compact()
        assert (row["usage"]["input_tokens"], row["usage"]["model"]) == (1_500, "Main")
        usage = (await chat.ask())["usage"]
        assert usage["compaction_tokens"] > 1_500
        assert usage["input_tokens"] > usage["compaction_tokens"] - row["usage"]["output_tokens"]
        told = (await chat.program.get("usage", group_by="purpose")).json()["items"]
        by_purpose = {next(iter(set(item.values()) & {"chat", "compaction"})): item for item in told}
        assert set(by_purpose) == {"chat", "compaction"}
        assert by_purpose["compaction"]["input_tokens"] == 1_500


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.preview")
@on_a_loop
async def test_a_compaction_request_can_override_the_policy(alice: User) -> None:
    async with chatting(alice, count=40) as chat:
        kept = []
        for wanted in ({}, {"keep_recent": 4}, {"keep_recent": 5, "summary_max_tokens": 64}):
            answer = await chat.post("compact", preview=True, **wanted)
            assert answer.status_code == 200, answer.content
            kept.append(answer.json()["kept_count"])
        assert kept[0] >= 10
        assert kept[1] == 4
        assert kept[2] == 6, "a question stays with its reply"
        assert (await chat.post("compact", preview=True, keep_recent=-1)).status_code == 422


@on_a_loop
async def test_a_summary_cannot_be_undone_while_another_is_being_built_on_it(alice: User) -> None:
    async with chatting(alice, count=120) as chat:
        first = await chat.compact(keep_recent=60)
        later = (await chat.post("compact", keep_recent=4)).json()
        assert later["status"] == "pending"
        refused = await chat.post(f"compactions/{first['id']}/undo")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_latest")
        assert (await chat.work(later["id"]))["status"] == "done"
        for each in (later, first):
            assert (await chat.post(f"compactions/{each['id']}/undo")).status_code == 200
        assert (await chat.see())["compaction"] is None


@pytest.mark.sqlite
@on_a_loop
async def test_an_unexpected_error_is_reported_without_its_own_message(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("password of db.internal")

    async with chatting(alice, count=120) as chat:
        begun = (await chat.post("compact")).json()
        monkeypatch.setattr(compactor, "finished_summary", fail)
        ended = await chat.work(begun["id"])
        assert (ended["status"], ended["error"]) == ("failed", UNEXPECTED)


@pytest.mark.parametrize("ends", ["deleted", "failed"])
@on_a_loop
async def test_summary_calls_are_in_the_ledger_even_if_the_summary_is_deleted_or_fails(
    alice: User, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("something unforeseen")

    async with chatting(alice, count=120) as chat:
        chat.server.script(says("The codes are here: QX-00003.", hold_after=0), kind="summary")
        asked = (await chat.post("compact")).json()
        working = asyncio.ensure_future(in_database(compact)(UUID(asked["id"])))
        await asyncio.to_thread(chat.server.wait_until, lambda server: bool(server.requests_of("summary")))
        if ends == "deleted":
            gone = await chat.program.delete(f"conversations/{chat.conversation}")
            assert gone.status_code < 300
        else:
            monkeypatch.setattr(compactor, "finished_summary", fail)
        chat.server.release()
        await working
    usage = await Usage.objects.aget(user=alice)
    home = None if ends == "deleted" else UUID(chat.conversation)
    assert (usage.purpose, usage.conversation_id) == ("compaction", home)


@pytest.mark.sqlite
@on_a_loop
async def test_a_summary_cannot_be_edited_while_a_later_one_is_written_from_it(alice: User) -> None:
    async with chatting(alice, count=120) as chat:
        first = await chat.compact(keep_recent=60)
        path = f"conversations/{chat.conversation}/compactions"
        own = "The quay of the plum boats is 12."
        chat.server.script(says("The old words are here: QX-00003.", hold_after=0), kind="summary")
        later = (await chat.post("compact", keep_recent=4)).json()
        working = asyncio.create_task(chat.work(later["id"]))
        await asyncio.to_thread(
            chat.server.wait_until, lambda server: len(server.requests_of("summary")) == 2
        )
        refused = await chat.program.patch(f"{path}/{first['id']}", summary=own)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_latest")
        chat.server.release()
        assert (await working)["status"] == "done"
        assert (await chat.program.patch(f"{path}/{later['id']}", summary=own)).status_code == 200
        assert own.encode() in await chat.model_input()


@pytest.mark.mechanism("ours.one-checkpoint")
@on_a_loop
async def test_a_redo_is_refused_if_another_summary_covers_the_same_messages(alice: User) -> None:
    async with chatting(alice, count=120) as chat:
        first = await chat.compact(keep_recent=60)
        assert (await chat.post(f"compactions/{first['id']}/undo")).status_code == 200
        longer = (await chat.post("compact", keep_recent=10)).json()
        refused = await chat.post(f"compactions/{first['id']}/redo")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "compaction_active")
        assert (await chat.work(longer["id"]))["status"] == "done"
        refused = await chat.post(f"compactions/{first['id']}/redo")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_latest")
        assert [row["status"] for row in await chat.compactions()] == ["undone", "done"]


@pytest.mark.mechanism("ours.one-checkpoint")
@on_a_loop
async def test_a_summary_replaced_by_a_clear_fails_with_a_sentence_and_its_calls_are_counted(
    alice: User,
) -> None:
    async with chatting(alice, count=120) as chat:
        asked = (await chat.post("compact")).json()
        cleared = await chat.post("context/clear")
        assert cleared.status_code == 200, cleared.content
        standing = await chat.model_input()
        ended = await chat.work(asked["id"])
        assert (ended["status"], ended["error"]) == ("failed", "Another summary has replaced this one.")
        assert ended["usage"]["input_tokens"] > 0
        assert await chat.model_input() == standing
