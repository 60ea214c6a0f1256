"""An answer is given even if recall fails, and the user is notified."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.realtime.models import Event
from chatapp.recall.models import SearchDocument
from tests.api.test_health import sample
from tests.context_engine.chatting import Chat, chatting, on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)

UNREADABLE = b"abc"
"""Not a whole number of terms."""


async def failures(chat: Chat) -> float:
    told = (await chat.program.get("/metrics")).content.decode()
    return sample(told, "palimpsest_recall_failures_total")


@on_a_loop
async def test_an_answer_is_given_with_a_notice_if_recall_fails(
    alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    async with chatting(alice) as chat:
        before = await failures(chat)
        await SearchDocument.objects.aupdate(terms=UNREADABLE)
        answer = await chat.ask("Which order did we talk about first?")
        assert answer["message"]["status"] == "complete"
        told = await Event.objects.aget(type="run.notice")
        assert told.payload["kind"] == "recall_failed"
        assert "could not be searched" in told.payload["text"]
        assert await failures(chat) == before + 1
    [logged] = [record for record in caplog.records if record.exc_info and "Recall failed" in record.message]
    assert f"run {told.run_id}" in logged.message


@on_a_loop
async def test_a_context_is_shown_with_a_warning_if_recall_fails(alice: User) -> None:
    async with chatting(alice) as chat:
        await SearchDocument.objects.aupdate(terms=UNREADABLE)
        seen = await chat.see("Which order did we talk about first?")
        assert seen["recalled"] == []
        assert "could not be searched" in seen["warning"]
