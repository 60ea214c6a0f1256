"""Large deletions and imports run in pieces, take effect at once, and continue after a kill."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from itertools import pairwise
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.db.models.signals import post_delete
from django.test import Client
from PIL import Image

from chatapp.accounts.models import User
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.files import attachments
from chatapp.forgetting import tasks as forgetting_tasks
from chatapp.forgetting.models import Removal, Tombstone
from chatapp.forgetting.selectors.forgotten import waiting_removals
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.forgetting.trash.services import clean_up_idle
from chatapp.operations import clock
from chatapp.operations.database.work_budget import Budget, Pace, PacedTransactions
from chatapp.operations.errors import Conflict
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.models import SearchDocument, SearchPosting
from chatapp.recall.selectors.unindexed import BATCH, overlooked_conversations
from chatapp.recall.user_search import search_memory
from chatapp.runs.actions.sending import NewMessage, send_message

pytestmark = pytest.mark.django_db(transaction=True)
Clients = Callable[..., Client]
SECRET = "heliotrope"
COUNT = 60


@dataclass
class FakeClock:
    """A clock that advances by `step` at each reading, so that time counts the work done."""

    step: float = 0.0
    now: float = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@dataclass
class Counting:
    """A pace that ends after `pieces` pieces, and the number of messages that each left."""

    pieces: int
    rows: int
    chars: int = 1_000_000
    rests: list[int] = field(default_factory=list)

    def pace(self) -> Pace:
        def rest(_: float) -> None:
            self.rests.append(Message.objects.count())

        time = FakeClock(step=1.0)
        budget = Budget(self.rows, self.chars, 1e9, FakeClock())
        return Pace(seconds=2.0 * self.pieces, budget=budget, clock=time, sleep=rest)


def said(count: int, words: str = SECRET) -> list[ImportedMessage]:
    return [
        ImportedMessage("user" if at % 2 == 0 else "assistant", f"{words} number{at}") for at in range(count)
    ]


def imported(user: User, count: int = COUNT, **options: Any) -> Conversation:
    return import_conversation(user=user, messages=said(count), now=clock.now(), title=SECRET, **options)


def test_a_deletion_takes_effect_everywhere_before_any_row_is_deleted(
    alice: User, api_client: Clients
) -> None:
    chat = imported(alice)
    buffer = io.BytesIO()
    Image.new("L", (4, 4), 7).save(buffer, "PNG")
    file = attachments.store_image(user=alice, name="a.png", content=buffer.getvalue())
    file.messages.add(chat.messages.get(position=0))
    client = api_client(alice)
    path = f"/api/v1/conversations/{chat.pk}"
    assert client.get(path).status_code == client.get(f"/api/v1/files/{file.pk}").status_code == 200
    message = chat.messages.get(position=0)

    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=Counting(pieces=0, rows=5).pace())

    assert Message.objects.count() == COUNT, "nothing but the first step was done"
    for address in ("", "/messages", f"/messages/{message.pk}", "/events", "/compactions", "/export"):
        assert client.get(f"{path}{address}").status_code == 404, address
    assert client.get(f"/api/v1/files/{file.pk}").status_code == 404
    for method, address, body in (
        ("post", f"{path}/messages", {"content": "Still there?"}),
        ("patch", path, {"title": "x"}),
        ("post", f"{path}/context", {"query": SECRET}),
        ("delete", path, {}),
        ("post", "/api/v1/memory/forget", {"message_id": str(message.pk)}),
    ):
        answer = getattr(client, method)(address, body, content_type="application/json")
        assert answer.status_code == 404, (address, answer.content)
    assert client.get("/api/v1/conversations").json()["items"] == []
    assert client.get("/api/v1/memory/search", {"q": SECRET}).json()["items"] == []
    assert search_memory(user_id=alice.pk, query=SECRET, limit=10, now=clock.now(), zone=UTC) == []
    assert chat.pk not in Conversation.objects.values_list("pk", flat=True)


@pytest.mark.mechanism("contract.pieces")
def test_rows_are_deleted_in_pieces_within_the_budget(alice: User) -> None:
    chat = imported(alice)
    counting = Counting(pieces=1_000, rows=7)
    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=counting.pace())
    left = [COUNT, *counting.rests, 0]
    assert max(before - after for before, after in pairwise(left)) <= 7
    assert not Message.objects.exists()
    assert not Conversation.with_unowned.exists()
    assert not SearchDocument.objects.exists()
    assert not SearchPosting.objects.exists()
    assert not Removal.objects.exists()
    assert Tombstone.objects.count() == COUNT // 2


def test_a_piece_ends_when_its_time_is_over(alice: User) -> None:
    chat = imported(alice, count=120)
    rests: list[int] = []
    pace = Pace(
        seconds=1e9,
        budget=Budget(10_000, 10_000_000, seconds=2.0, clock=FakeClock(step=1.0)),
        clock=FakeClock(),
        sleep=lambda _: rests.append(Message.objects.count()),
    )
    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=pace)
    assert set(rests) == {120, 70, 20, 0}, "50 messages, then a look at the clock"
    assert not Message.objects.exists()


def test_pieces_are_bounded_by_characters(alice: User) -> None:
    messages = said(12, "word " * 1_000)
    chat = import_conversation(user=alice, messages=messages, now=clock.now())
    counting = Counting(pieces=1_000, rows=1_000, chars=10_000)
    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=counting.pace())
    left = [12, *counting.rests, 0]
    assert max(before - after for before, after in pairwise(left)) == 2


@pytest.mark.parametrize("pieces", [0, 1, 3, 9, 14])
def test_the_sweep_continues_the_deletion_of_a_killed_process(alice: User, pieces: int) -> None:
    chat, kept = imported(alice), imported(alice, count=4)
    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=Counting(pieces, rows=7).pace())
    for _ in range(20):  # a slow machine needs more than one turn
        Removal.objects.update(lease_expires_at=clock.now() - timedelta(hours=1))
        for removal_id in list(Removal.objects.values_list("pk", flat=True)):
            forgetting_tasks.remove_rest(str(removal_id))
    assert not Removal.objects.exists()
    assert set(Conversation.with_unowned.values_list("pk", flat=True)) == {kept.pk}
    assert Message.objects.count() == 4
    assert len(search_memory(user_id=alice.pk, query=SECRET, limit=10, now=clock.now(), zone=UTC)) == 4


def test_a_kill_inside_a_transaction_leaves_the_deletion_to_the_next_process(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = imported(alice)

    class Killed(BaseException):
        pass

    def kill(**_: Any) -> None:
        raise Killed

    post_delete.connect(kill, sender=Message)
    try:
        with pytest.raises(Killed):
            forget_whole_conversation(alice, chat.pk, now=clock.now())
    finally:
        post_delete.disconnect(kill, sender=Message)
    assert Message.objects.count() == COUNT
    assert waiting_removals(clock.now()) == [], "its lease still runs"
    [removal_id] = waiting_removals(clock.now() + timedelta(minutes=2))
    Removal.objects.update(lease_expires_at=clock.now() - timedelta(seconds=1))
    forgetting_tasks.remove_rest(str(removal_id))
    assert not Message.objects.exists()


def test_the_clean_up_deletes_in_pieces_too(alice: User) -> None:
    chat = imported(alice)
    Conversation.objects.update(last_activity_at=clock.now() - timedelta(days=40))
    pace = Counting(pieces=2, rows=7).pace()
    assert clean_up_idle(now=clock.now(), days=30, trash_days=0, pace=pace) == 1
    assert not Conversation.objects.filter(pk=chat.pk).exists()
    assert Message.objects.count() > 0
    forgetting_tasks.remove_rest(str(Removal.objects.get().pk))
    assert not Message.objects.exists()
    assert not Tombstone.objects.exists(), "what retention deletes may be learned again"


def test_an_idempotency_key_is_free_once_its_conversation_is_deleted(alice: User) -> None:
    first, second = imported(alice, count=2), imported(alice, count=2)
    new = NewMessage(text="Hello", client_id="key")
    send_message(user=alice, conversation_id=str(first.pk), new=new, model=None, now=clock.now())
    forget_whole_conversation(alice, first.pk, now=clock.now(), pace=Counting(pieces=0, rows=5).pace())
    receipt = send_message(user=alice, conversation_id=str(second.pk), new=new, model=None, now=clock.now())
    assert receipt.conversation_id == str(second.pk)


def test_documents_of_a_deleted_conversation_are_never_sealed(alice: User) -> None:
    chat, other = imported(alice, count=100), imported(alice, count=100)
    forget_whole_conversation(alice, chat.pk, now=clock.now(), pace=Counting(pieces=0, rows=5).pace())
    import_conversation(user=alice, messages=said(200, "plum"), now=clock.now())
    forgetting_tasks.remove_rest(str(Removal.objects.get().pk))
    found = search_memory(user_id=alice.pk, query=SECRET, limit=300, now=clock.now(), zone=UTC)
    assert {one.conversation_id for one in found} == {other.pk}
    assert not SearchDocument.objects.filter(conversation=None).exists()


# --- Imports --------------------------------------------------------------------------------------------


def test_an_import_is_hidden_until_it_is_complete(alice: User, api_client: Clients) -> None:
    client, seen = api_client(alice), []

    def look(_: float) -> None:
        unfinished = Conversation.with_unowned.filter(user=None).values_list("pk", flat=True)
        statuses = {client.get(f"/api/v1/conversations/{pk}").status_code for pk in unfinished}
        seen.append((statuses, client.get("/api/v1/conversations").json()["items"], Message.objects.count()))

    pace = Pace(1e9, Budget(7, 1_000_000, 1e9, FakeClock()), FakeClock(), look)
    chat = import_conversation(user=alice, messages=said(20), now=clock.now(), pace=pace)
    during = [one for one in seen if one[0]]
    assert [count for _, _, count in during] == [0, 7, 14, 20]
    assert all(statuses == {404} and items == [] for statuses, items, _ in during)
    assert client.get(f"/api/v1/conversations/{chat.pk}").status_code == 200
    assert list(chat.messages.order_by("position").values_list("position", flat=True)) == list(range(20))
    assert not Removal.objects.exists()


def test_large_tool_results_count_towards_the_size_of_a_piece(alice: User) -> None:
    parts = [
        {"type": "text", "text": "See."},
        {"type": "tool_result", "call_id": "c", "name": "clock", "text": "x" * 900, "is_error": False},
    ]
    messages = [ImportedMessage("assistant", "See.", columns={"parts": parts}) for _ in range(4)]
    stored: list[int] = []
    budget = Budget(100, 1_000, 1e9, FakeClock())
    pace = Pace(1e9, budget, FakeClock(), lambda _: stored.append(Message.objects.count()))
    import_conversation(user=alice, messages=messages, now=clock.now(), pace=pace)
    assert stored == [0, 2, 4, 4]


def test_a_failed_import_leaves_nothing(alice: User) -> None:
    class Broken(RuntimeError):
        pass

    def fail(_: float) -> None:
        raise Broken

    pace = Pace(1e9, Budget(7, 1_000_000, 1e9, FakeClock()), FakeClock(), fail)
    with pytest.raises(Broken):
        import_conversation(user=alice, messages=said(20), now=clock.now(), pace=pace)
    assert not Conversation.objects.exists()
    [removal_id] = waiting_removals(clock.now())
    forgetting_tasks.remove_rest(str(removal_id))
    assert not Conversation.with_unowned.exists()
    assert not Message.objects.exists()


def test_an_abandoned_import_adds_no_more_messages(alice: User) -> None:
    def give_up(_: float) -> None:
        Removal.objects.update(lease_expires_at=clock.now() - timedelta(seconds=1))
        for removal_id in list(Removal.objects.values_list("pk", flat=True)):
            forgetting_tasks.remove_rest(str(removal_id))

    pace = Pace(1e9, Budget(7, 1_000_000, 1e9, FakeClock()), FakeClock(), give_up)
    with pytest.raises(Conflict):
        import_conversation(user=alice, messages=said(20), now=clock.now(), pace=pace)
    assert not Message.objects.exists()


def test_work_prepared_between_two_pieces_shortens_the_rest() -> None:
    moments = iter([10.0, 11.0, 11.5, 20.0, 22.0, 30.0, 40.0, 41.0])
    rests: list[float] = []
    turns = PacedTransactions(Pace(1e9, clock=lambda: next(moments), sleep=rests.append), lambda _: True)
    for _ in range(3):
        with turns.hold():
            pass
    assert rests == [1.5, 0.0], "twice as long as it was held, less what passed since"


def test_rests_are_short_while_nobody_else_writes(alice: User, bob: User) -> None:
    moments = iter([0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0])
    rests: list[float] = []
    turns = PacedTransactions(Pace(1e9, clock=lambda: next(moments), sleep=rests.append))
    for at in range(4):
        with turns.hold():
            alice.save()
        if at == 1:
            in_thread(bob.save)
    if connection.vendor == "sqlite":
        assert rests == [0.5, 0.5, 2.0], "another connection has written before the third"
    else:
        assert rests == [0.5, 0.5, 0.5], "they do not wait for one lock"


def in_thread(work: Callable[[], object]) -> None:
    """Run `work` on another connection."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    thread.join()


# --- Index ----------------------------------------------------------------------------------------------


def test_index_batches_are_bounded_by_characters(alice: User) -> None:
    chat = import_conversation(
        user=alice, messages=said(8, "word " * 5_000), now=clock.now(), index_at_once=0
    )
    counts: list[int] = []
    pace = Pace(
        1e9,
        clock=FakeClock(),
        sleep=lambda _: counts.append(SearchDocument.objects.values("source_id").distinct().count()),
    )
    index_conversation(chat.pk, pace)
    assert counts[:4] == [2, 4, 6, 8]


@pytest.mark.mechanism("contract.pieces")
def test_a_large_backlog_lets_other_work_run_in_between(alice: User, bob: User) -> None:
    backlog, short = imported(alice, count=900, index_at_once=0), imported(bob, count=2, index_at_once=0)
    pace = Pace(0.0, clock=FakeClock(step=1.0), sleep=lambda _: None)
    assert index_conversation(backlog.pk, pace) == BATCH
    assert index_conversation(short.pk, pace) == 2
    Conversation.objects.filter(pk=short.pk).update(last_activity_at=clock.now() - timedelta(seconds=20))
    for at in range(3):
        another = imported(alice, count=2, index_at_once=0)
        Conversation.objects.filter(pk=another.pk).update(
            last_activity_at=clock.now() - timedelta(minutes=9 - at)
        )
    imported(bob, count=2, index_at_once=0)
    Conversation.objects.filter(user=bob).update(last_activity_at=clock.now() - timedelta(seconds=20))
    first = overlooked_conversations(clock.now(), limit=2)
    assert set(Conversation.objects.filter(pk__in=first).values_list("user", flat=True)) == {alice.pk, bob.pk}
