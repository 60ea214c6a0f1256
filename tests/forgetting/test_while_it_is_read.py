"""A run of another conversation does not keep text that is forgotten while the run reads it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test import Client

from agents import events
from agents.requests.manifest import Manifest, dump_manifest
from agents.types import WireStyle
from chatapp.accounts.models import User
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations.models import Conversation, Message
from chatapp.features.sharing.actions import share_conversation
from chatapp.features.sharing.selectors import token_of
from chatapp.forgetting.actions.collecting import Chosen, begin_forgetting
from chatapp.forgetting.actions.forget import forget_items
from chatapp.forgetting.actions.forget_all import forget_conversation
from chatapp.forgetting.services import forget_message, forget_whole_conversation
from chatapp.operations import clock
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.operations.database.work_budget import PIECE
from chatapp.operations.errors import LeaseLost, ReadForgotten
from chatapp.runs import runner
from chatapp.runs.actions.runs import Lease, claim_run, record_facts
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from tests.api.running import running_service
from tests.blocking import somebody_waits
from tests.forgetting.everywhere import tables_with
from tests.forgetting.lives import SAID, SECRET, read_elsewhere, send_request
from tests.memory_store.rows import NOW, new_conversation, say

NOTHING_SENT = dump_manifest(Manifest(sha256="0" * 64, head={}, style=WireStyle(), pieces=()))

pytestmark = pytest.mark.django_db(transaction=True)


def ask(user: User, question: str = "What do I like?") -> tuple[Conversation, UUID]:
    conversation = new_conversation(user, at=NOW + timedelta(days=1))
    receipt = send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=NewMessage(question),
        model=None,
        now=clock.now(),
    )
    return conversation, UUID(receipt.run_id)


def claim(run_id: UUID, forgotten_count: int = 0) -> Lease:
    lease = claim_run(
        run_id=run_id,
        holder="a process",
        model_name="m",
        now=clock.now(),
        forgotten_count=forgotten_count,
    )
    assert lease is not None
    return lease


def recalled(conversation: Conversation, run_id: UUID, source: UUID, text: str = SAID) -> events.Recall:
    item = events.RecalledItem(source={"kind": "message", "message_id": str(source)}, tokens=9, preview=text)
    return events.Recall(
        conversation_id=str(conversation.pk), run_id=str(run_id), at=clock.now(), items=[item]
    )


def in_context(conversation: Conversation, run_id: UUID) -> events.Context:
    parts = events.ContextParts(system=1, profile=0, tools=0, summary=0, history=1, recall=0)
    return events.Context(
        conversation_id=str(conversation.pk),
        run_id=str(run_id),
        at=clock.now(),
        used_tokens=2,
        budget_tokens=100,
        parts=parts,
        exact=False,
    )


def keep_request(run_id: UUID) -> None:
    SentRequest.objects.create(
        run_id=run_id,
        n=1,
        purpose="chat",
        sha256="0" * 64,
        tokens=1,
        manifest=NOTHING_SENT,
        created_at=clock.now(),
    )


@pytest.mark.mechanism("forgetting.runs")
@pytest.mark.parametrize("whole", [False, True], ids=["a message", "its conversation"])
def test_a_run_cannot_record_a_recall_of_text_forgotten_meanwhile(alice: User, whole: bool) -> None:
    source = new_conversation(alice)
    message, _ = say(source, SAID, "Noted.")
    conversation, run_id = ask(alice)
    lease = claim(run_id)
    if whole:
        forget_whole_conversation(alice, source.pk, now=clock.now())
    else:
        forget_message(alice, message.pk, now=clock.now())
    with pytest.raises(LeaseLost, match="something it may have read was forgotten"):
        record_facts(lease=lease, facts=[recalled(conversation, run_id, message.pk)])
    assert Run.objects.get(pk=run_id).status == Run.Status.INTERRUPTED
    assert tables_with(SECRET) == []


def test_a_run_that_recalled_something_else_continues(alice: User) -> None:
    message, other = say(new_conversation(alice), SAID, "The harbour freezes in January.")
    conversation, run_id = ask(alice)
    lease = claim(run_id)
    told = recalled(conversation, run_id, other.pk, "The harbour freezes in January.")
    record_facts(lease=lease, facts=[told, in_context(conversation, run_id)])
    keep_request(run_id)
    forget_message(alice, message.pk, now=clock.now())
    record_facts(lease=lease, facts=[in_context(conversation, run_id)])
    assert Run.objects.get(pk=run_id).status == Run.Status.RUNNING


def test_a_run_of_another_user_continues(alice: User, bob: User) -> None:
    message, _ = say(new_conversation(alice), SAID, "Noted.")
    conversation, run_id = ask(bob)
    lease = claim(run_id)
    forget_message(alice, message.pk, now=clock.now())
    record_facts(lease=lease, facts=[in_context(conversation, run_id)])


def test_a_claim_is_refused_if_text_was_forgotten_since_the_context_was_read(alice: User) -> None:
    message, _ = say(new_conversation(alice), SAID, "Noted.")
    conversation, run_id = ask(alice)
    read_at = read_forgetting_count(conversation.forgetting_keys)
    forget_message(alice, message.pk, now=clock.now())
    with pytest.raises(ReadForgotten):
        claim(run_id, read_at)
    assert claim(run_id, read_forgetting_count(conversation.forgetting_keys))


@pytest.mark.mechanism("forgetting.runs")
def test_a_claim_waits_for_a_forgetting_that_has_begun(alice: User) -> None:
    _, run_id = ask(alice)
    ended: list[type[Exception] | None] = []

    def claim_beside() -> None:
        try:
            claim(run_id)
            ended.append(None)
        except ReadForgotten as error:
            ended.append(type(error))
        finally:
            connection.close()

    other = threading.Thread(target=claim_beside)
    with transaction.atomic():
        begin_forgetting(alice.pk)
        other.start()
        other.join(0.3)
        assert not ended
    other.join()
    assert ended == [ReadForgotten]


@pytest.mark.postgres
@pytest.mark.parametrize("beside", [0, PIECE.rows], ids=["a short chat", "one copied in pieces"])
@pytest.mark.parametrize("whole", [False, True], ids=["a message", "its conversation"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["a fork", "a copy of a shared chat"])
def test_a_copy_contains_nothing_that_is_forgotten_meanwhile(
    alice: User,
    bob: User,
    api_client: Callable[..., Client],
    is_shared: bool,
    whole: bool,
    beside: int,
) -> None:
    source = new_conversation(alice, SAID)
    source.title_made_of = 0
    source.save()
    message, *_ = say(source, SAID, "Noted.", *["It rains."] * beside)
    if is_shared:
        chosen = {"user": alice, "conversation_id": str(source.pk), "expires_at": None, "now": clock.now()}
        share, _ = share_conversation(**chosen)
        who, address = bob, f"/api/v1/shared/{token_of(share.pk)}/copy"
    else:
        who, address = alice, f"/api/v1/conversations/{source.pk}/fork"
    client, answers = api_client(who), list[int]()

    def copy_beside() -> None:
        try:
            answers.append(client.post(address, {}, content_type="application/json").status_code)
        finally:
            connection.close()

    other = threading.Thread(target=copy_beside)
    with transaction.atomic():
        if whole:
            forget_conversation(user=alice, conversation_id=source.pk, now=clock.now())
        else:
            forget_items(Chosen(alice, clock.now(), frozenset({message.pk})), what="message")
        # The copy reads the conversation as it was before the forgetting commits.
        other.start()
        while other.is_alive() and not somebody_waits():
            other.join(0.02)
    other.join()
    copies = Message.objects.filter(conversation__user=who).exclude(conversation=source)
    assert not [row for row in copies if SECRET in str(row.parts)]
    assert not Conversation.objects.filter(title__contains=SECRET).exists()
    assert answers == [404] if whole else copies.count() == 1 + beside


def test_a_run_whose_conversation_is_deleted_before_its_claim_logs_no_error(
    alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    conversation, run_id = ask(alice)
    forget_whole_conversation(alice, conversation.pk, now=clock.now())

    async def answer() -> None:
        async with running_service():  # its exit waits for running answers
            runner.start(str(run_id))

    with caplog.at_level(logging.INFO, "chatapp.runs.runner"):
        asyncio.run(answer())
    told = [row.levelname for row in caplog.records if str(run_id) in row.getMessage()]
    assert told == ["INFO"]


def test_a_stored_request_loses_forgotten_text_that_its_event_does_not_contain(alice: User) -> None:
    """The event lists only the best recalled items, the request contains all. Texts of other requests stay."""
    message, _ = say(new_conversation(alice), f"{SAID} And bread is cheap.", "Noted.")
    send_request(read_elsewhere(alice, [message.pk]), f"2026-11-21\nuser: […] {SAID} […]")
    send_request(read_elsewhere(alice, []), "2026-11-21\nuser: The harbour freezes.")
    forget_message(alice, message.pk, now=clock.now())
    assert tables_with(SECRET) == []
    assert RequestText.objects.exists()
