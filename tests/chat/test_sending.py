"""An accepted message is stored once and in order, and its rows exist before any work begins."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import full_messages, stored_answer_text
from chatapp.operations import clock
from chatapp.operations.errors import Conflict, InvalidInput, LeaseLost, NotFound
from chatapp.providers.models import Usage
from chatapp.providers.usage import CallTimes, CallUsage
from chatapp.realtime.event_log import read_after
from chatapp.runs.actions.answering_again import continue_run, regenerate_message
from chatapp.runs.actions.endings import Outcome, finish_run, interrupt_run, request_stop
from chatapp.runs.actions.injected_messages import inject_message, take_injected
from chatapp.runs.actions.runs import Lease, PartialAnswer, checkpoint_answers, claim_run, record_plan
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import AnswerPiece, Run
from tests.blocking import somebody_waits

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return create_conversation(user=alice, now=clock.now())


def send(user: User, conversation: Conversation, text: str = "Hello", **more: str) -> Receipt:
    return send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=NewMessage(text=text, **more),
        model=None,
        now=clock.now(),
    )


def claim(receipt: Receipt, holder: str = "here") -> Lease:
    run = Run.objects.get(pk=receipt.run_id)
    lease = claim_run(run_id=run.pk, holder=holder, model_name="test", now=clock.now())
    assert lease is not None
    return lease


def finish(receipt: Receipt, text: str = "Hi!", status: str = Run.Status.COMPLETE) -> Lease:
    lease = claim(receipt)
    finish_run(lease=lease, outcome=Outcome(status, PartialAnswer(lease, text)), now=clock.now())
    return lease


def event_types(conversation: Conversation) -> list[str]:
    return [payload["type"] for payload in read_after(conversation.pk, 0)]


def test_a_send_stores_the_message_the_answers_row_and_a_queued_run(
    alice: User, conversation: Conversation
) -> None:
    receipt = send(alice, conversation, "What is up?")

    question, answer = Message.objects.order_by("position")
    assert (question.role, question.parts[0]["text"], question.position) == ("user", "What is up?", 0)
    assert (answer.role, answer.status, answer.position, answer.parent) == (
        "assistant",
        "streaming",
        1,
        question,
    )
    assert Run.objects.get().status == Run.Status.QUEUED
    assert receipt.seq == 1
    assert event_types(conversation) == ["message.created", "conversation.updated"]


def test_a_second_send_with_the_same_key_returns_the_same_message_and_run(
    alice: User, conversation: Conversation
) -> None:
    first = send(alice, conversation, client_id="k1")
    finish(first)
    again = send(alice, conversation, client_id="k1")

    assert (again.message_id, again.run_id, again.seq) == (first.message_id, first.run_id, first.seq)
    assert not again.is_new
    assert Message.objects.count() == 2


def test_the_same_key_for_another_text_is_refused(alice: User, conversation: Conversation) -> None:
    finish(send(alice, conversation, client_id="k1"))
    with pytest.raises(InvalidInput, match="already used"):
        send(alice, conversation, "Something else", client_id="k1")


def test_the_same_key_of_another_user_is_another_message(
    alice: User, bob: User, conversation: Conversation
) -> None:
    send(alice, conversation, client_id="k1")
    send(bob, create_conversation(user=bob, now=clock.now()), client_id="k1")
    assert Run.objects.count() == 2


def test_concurrent_duplicates_store_one_message(alice: User, conversation: Conversation) -> None:
    def attempt(_: int) -> Receipt:
        try:
            return send(alice, conversation, client_id="k1")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        receipts = list(threads.map(attempt, range(8)))
    assert len({receipt.message_id for receipt in receipts}) == 1
    assert sum(receipt.is_new for receipt in receipts) == 1
    assert Run.objects.count() == 1


def test_a_second_message_during_a_run_is_a_conflict(alice: User, conversation: Conversation) -> None:
    send(alice, conversation)
    with pytest.raises(Conflict):
        send(alice, conversation, "And another thing")


def test_another_users_conversation_is_not_found(charlie: User, conversation: Conversation) -> None:
    with pytest.raises(NotFound):
        send(charlie, conversation)


def test_an_empty_message_is_refused_and_not_stored(alice: User, conversation: Conversation) -> None:
    with pytest.raises(InvalidInput):
        send(alice, conversation, "  \n ")
    assert not Message.objects.exists()


def test_facts_are_numbered_without_gaps_and_run_finished_is_the_last_of_its_run(
    alice: User, conversation: Conversation
) -> None:
    finish(send(alice, conversation))
    payloads = read_after(conversation.pk, 0)
    assert [payload["seq"] for payload in payloads] == list(range(1, len(payloads) + 1))
    of_run = [payload for payload in payloads if payload.get("run_id")]
    assert of_run[0]["type"] == "run.started"
    assert of_run[-1]["type"] == "run.finished"
    assert [payload["type"] for payload in of_run].count("run.finished") == 1


def test_a_write_with_an_old_fencing_number_changes_nothing(alice: User, conversation: Conversation) -> None:
    receipt = send(alice, conversation)
    lease = claim(receipt)
    checkpoint_answers(answers=[PartialAnswer(lease, "Partial")])
    assert interrupt_run(run_id=lease.run_id, fence=lease.fence, now=clock.now())

    checkpoint_answers(answers=[PartialAnswer(lease, "Too late")])
    with pytest.raises(LeaseLost):
        finish_run(
            lease=lease,
            outcome=Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "Too late")),
            now=clock.now(),
        )
    answer = Message.objects.get(pk=receipt.answer_id)
    assert (answer.status, answer.parts[0]["text"]) == ("interrupted", "Partial")


def test_a_checkpoint_writes_only_new_text_and_readers_get_the_whole_text(
    alice: User, conversation: Conversation
) -> None:
    receipt = send(alice, conversation)
    lease = claim(receipt)
    whole, stored = "", 0
    for number in range(200):
        whole += f"Wört {number}, "
        partial = PartialAnswer(lease, whole, "Hm", text_stored=stored, reasoning_stored=2 if number else 0)
        assert checkpoint_answers(answers=[partial]) == {lease.run_id}
        stored = len(whole)
    # A retry after a lost commit response has more text and begins where the first attempt began.
    began = AnswerPiece.objects.filter(kind="text").latest("offset").offset
    again = PartialAnswer(lease, whole + "and more", "Hm", text_stored=began, reasoning_stored=2)
    checkpoint_answers(answers=[again])

    written = AnswerPiece.objects.values_list("text", flat=True)
    assert sum(map(len, written)) == len(whole + "and more") + 2
    assert stored_answer_text(alice, receipt.answer_id).text == whole + "and more"
    [shape] = full_messages([Message.objects.get(pk=receipt.answer_id)])
    assert [part["text"] for part in shape["content"]] == ["Hm", whole + "and more"]

    assert interrupt_run(run_id=lease.run_id, fence=lease.fence, now=clock.now())
    parts = Message.objects.get(pk=receipt.answer_id).parts
    assert [part["text"] for part in parts] == ["Hm", whole + "and more"]
    assert not AnswerPiece.objects.exists()


def test_a_partial_text_that_waited_for_the_end_of_its_run_does_not_overwrite_the_answer(
    alice: User, conversation: Conversation
) -> None:
    receipt = send(alice, conversation)
    lease = claim(receipt)

    def store_late() -> None:
        try:
            checkpoint_answers(answers=[PartialAnswer(lease, "Hal")])
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            whole = Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "Half and half"))
            finish_run(lease=lease, outcome=whole, now=clock.now())
            late = threads.submit(store_late)
            wait_until_somebody_waits(late)
        late.result()
    answer = Message.objects.get(pk=receipt.answer_id)
    assert (answer.status, answer.parts[0]["text"]) == ("complete", "Half and half")


def wait_until_somebody_waits(late: Future[None]) -> None:
    """Wait until another transaction waits for a lock. SQLite does not show it, so there return at once."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        while not late.done():
            cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            if cursor.fetchone():
                return


def test_only_one_process_can_claim_a_run(alice: User, conversation: Conversation) -> None:
    receipt = send(alice, conversation)
    claim(receipt)
    run = Run.objects.get(pk=receipt.run_id)
    assert claim_run(run_id=run.pk, holder="there", model_name="test", now=clock.now()) is None


def test_stopping_a_queued_run_ends_it_at_once(alice: User, conversation: Conversation) -> None:
    receipt = send(alice, conversation)
    request_stop(run=Run.objects.get(pk=receipt.run_id), now=clock.now())
    assert Run.objects.get(pk=receipt.run_id).status == Run.Status.STOPPED
    assert event_types(conversation)[-1] == "run.finished"


def test_regenerating_an_answer_creates_a_sibling_branch(alice: User, conversation: Conversation) -> None:
    first = send(alice, conversation)
    finish(first, "One")
    finish(send(alice, conversation, "Go on"), "Two")
    again = regenerate_message(
        user=alice,
        conversation_id=str(conversation.pk),
        message_id=first.answer_id,
        model=None,
        now=clock.now(),
    )
    finish(again, "Another one")

    conversation.refresh_from_db()
    assert conversation.branch is not None
    shown = visible_messages(conversation.branch).order_by("position")
    assert [message.parts[0]["text"] for message in shown] == ["Hello", "Another one"]
    assert list(Message.objects.order_by("position").values_list("position", flat=True)) == [0, 1, 2, 3, 4]


def test_an_injected_message_is_returned_again_to_a_run_that_does_not_know_it(
    alice: User, conversation: Conversation
) -> None:
    """The response to a commit can be lost with the connection, and the run retries."""
    lease = claim(send(alice, conversation))
    new = NewMessage(text="In French, please.")
    sent = inject_message(user=alice, conversation_id=str(conversation.pk), new=new, now=clock.now())
    for _ in range(2):
        heard = take_injected(lease=lease, known=[], now=clock.now())
        assert [(str(message.pk), message.position) for message in heard] == [(sent.message_id, 1)]
    assert take_injected(lease=lease, known=[heard[0].pk], now=clock.now()) == []
    assert conversation.events.filter(type="message.moved").count() == 1


def test_the_usage_of_a_plan_is_counted_once_however_often_it_is_recorded(
    alice: User, conversation: Conversation
) -> None:
    lease = claim(send(alice, conversation))
    times = CallTimes(clock.now(), first_token_ms=1, duration_ms=2, request_n=1)
    spent = [CallUsage(None, "plan", 10, 2, times=times, plan_step="planner")]
    for _ in range(2):
        record_plan(lease=lease, steps=(), spent=spent, now=clock.now())
    assert Usage.objects.filter(run=lease.run_id).count() == 1
    assert conversation.events.filter(type="usage").count() == 1


@pytest.mark.postgres  # SQLite has one writer at a time, so nothing can be read before the lock
def test_continue_is_refused_if_the_answer_completes_meanwhile(
    alice: User, conversation: Conversation
) -> None:
    receipt = send(alice, conversation)
    lease = claim(receipt)
    refused: list[Conflict] = []

    def go_on() -> None:
        try:
            continue_run(user=alice, run_id=receipt.run_id, now=clock.now())
        except Conflict as error:
            refused.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=go_on)
    with transaction.atomic():
        Conversation.objects.select_for_update().get(pk=conversation.pk)
        other.start()
        while other.is_alive() and not somebody_waits():
            other.join(0.02)
        outcome = Outcome(Run.Status.COMPLETE, PartialAnswer(lease, "All of it."))
        finish_run(lease=lease, outcome=outcome, now=clock.now())
    other.join()
    assert [error.message for error in refused] == ["Only an unfinished last answer can be continued."]
