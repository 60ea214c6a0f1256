"""Each request of a run is stored by reference and can be shown again: byte for byte, or with deleted pieces marked."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.accounts.models import User
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations.models import Message
from chatapp.files.attachments import store_image
from chatapp.operations.database.threads import in_database
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.files.test_attachments import picture
from tests.servers.behaviour import ERRORS, says

pytestmark = pytest.mark.django_db(transaction=True)


async def sent_of(chat: Chat, answer: dict[str, Any]) -> list[dict[str, Any]]:
    listed = await chat.program.get(f"runs/{answer['run_id']}/requests")
    assert listed.status_code == 200, listed.content
    return list(listed.json()["items"])


async def shown(chat: Chat, answer: dict[str, Any], n: int = 1) -> dict[str, Any]:
    found = await chat.program.get(f"runs/{answer['run_id']}/requests/{n}")
    assert found.status_code == 200, found.content
    return dict(found.json())


@pytest.mark.mechanism("ours.sent-requests")
@on_a_loop
async def test_a_request_is_shown_as_sent_with_the_hash_of_its_bytes(alice: User) -> None:
    async with chatting(alice) as chat:
        answer = await chat.ask("What was message 7?")
        [listed] = await sent_of(chat, answer)
        [arrived] = chat.server.requests_of("chat")
        assert (listed["n"], listed["purpose"], listed["model"]) == (1, "chat", "Main")
        assert listed["sha256"] == arrived.sha256
        request = await shown(chat, answer)
        assert request["verified"]
        assert request["body"] == arrived.body
        sources = [piece["source"] for piece in request["pieces"]]
        assert sources == ["system", *["history"] * 60, "question"]
        assert abs(sum(piece["tokens"] for piece in request["pieces"]) - listed["tokens"]) <= 1


@on_a_loop
async def test_a_request_is_shown_unchanged_after_summaries_and_later_answers(alice: User) -> None:
    async with chatting(alice) as chat:
        first = await chat.ask("Before the summary?")
        await chat.compact()
        second = await chat.ask("After it?")
        await chat.ask("And later?")
        for answer in (first, second):
            assert (await shown(chat, answer))["verified"]
        pieces = (await shown(chat, second))["pieces"]
        assert [piece["source"] for piece in pieces[:2]] == ["system", "summary"]


@on_a_loop
async def test_every_request_of_a_run_is_stored_even_a_refused_one(alice: User) -> None:
    async with chatting(alice) as chat:
        chat.server.script(ERRORS["overflow_openai"](), says("Fine now."))
        answer = await chat.ask()
        assert [row["n"] for row in await sent_of(chat, answer)] == [1, 2]
        assert (await shown(chat, answer, 1))["verified"]
        assert (await shown(chat, answer, 2))["verified"]


@on_a_loop
async def test_stored_requests_do_not_copy_the_history(alice: User) -> None:
    async with chatting(alice) as chat:
        for _ in range(3):
            await chat.ask()
        assert await SentRequest.objects.acount() == 3
        assert [text.source async for text in RequestText.objects.all()] == ["system"]
        async for row in SentRequest.objects.all():
            assert len(row.manifest) < 1_000


@on_a_loop
async def test_a_request_with_the_profile_is_shown_with_its_source(alice: User) -> None:
    """The response is validated against its schema, so an unknown source would be a 500."""
    async with chatting(alice, count=2) as chat:
        put = await chat.program.call("PUT", "memory/profile", body={"markdown": "- Plays the cello."})
        assert put.status_code == 200, put.content
        request = await shown(chat, await chat.ask())
        assert request["verified"]
        assert [piece["source"] for piece in request["pieces"][:2]] == ["system", "profile"]


@on_a_loop
async def test_a_request_with_an_edited_answer_shows_it_as_history(alice: User) -> None:
    """The response is validated against its schema, so an unknown source would be a 500."""
    async with chatting(alice, count=2) as chat:
        answer = await chat.ask()
        edited = await chat.program.patch(
            f"conversations/{chat.conversation}/messages/{answer['message']['id']}", content="Paris."
        )
        assert (edited.status_code, edited.json()["kind"]) == (200, "edited")
        request = await shown(chat, await chat.ask("And after it?"))
        assert request["verified"]
        [piece] = [piece for piece in request["pieces"] if piece["message_id"] == edited.json()["id"]]
        assert (piece["source"], piece["content"]) == ("history", "Paris.")


@pytest.mark.mechanism("ours.sent-requests")
@on_a_loop
async def test_pieces_deleted_or_forgotten_since_are_marked_in_their_place(alice: User) -> None:
    async with chatting(alice) as chat:
        await chat.compact()
        answer = await chat.ask()
        kept = (await shown(chat, answer))["pieces"][-3]
        await Message.objects.filter(pk=kept["message_id"]).adelete()
        gone, _ = await RequestText.objects.filter(source="summary").adelete()
        assert gone == 1
        request = await shown(chat, answer)
        assert not request["verified"]
        assert [piece["state"] for piece in request["pieces"]].count("deleted") == 1
        assert request["pieces"][-3]["state"] == "deleted"
        assert request["pieces"][1]["state"] == "forgotten"
        assert kept["content"] not in str(request)


@on_a_loop
async def test_a_picture_is_part_of_the_hash_but_is_not_shown(alice: User) -> None:
    async with chatting(alice, count=2) as chat:
        stored = await in_database(store_image)(user=alice, name="red.png", content=picture())
        sent = await chat.post("messages", content="What is this?", attachments=[str(stored.pk)])
        request = await shown(chat, sent.json())
        assert request["verified"]
        assert f"attachment:{stored.pk}" in str(request["body"])
        assert "base64" not in str(request)


@on_a_loop
async def test_requests_are_deleted_with_their_conversation(alice: User) -> None:
    async with chatting(alice) as chat:
        await chat.ask()
        gone = await chat.program.delete(f"conversations/{chat.conversation}")
        assert gone.status_code == 204
        assert not await SentRequest.objects.aexists()
        assert not await RequestText.objects.aexists()
