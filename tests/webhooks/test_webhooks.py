"""Webhooks send signed events, retry failed deliveries and never reach internal addresses."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from chatapp.accounts.actions import create_token
from chatapp.accounts.models import ApiToken, User
from chatapp.conversations.models import Conversation
from chatapp.features.webhooks import actions, sending
from chatapp.features.webhooks.actions import claim_delivery, create_webhook, record_attempt, send_again
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.features.webhooks.selectors import due_deliveries
from chatapp.features.webhooks.tasks import wake_waiting
from chatapp.forgetting.services import delete_message
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.realtime.models import Event
from chatapp.runs.actions.sending import NewMessage, send_message
from tests.fixtures.processes import ServiceStarter
from tests.memory_store.rows import new_conversation
from tests.servers.apart import run_apart
from tests.servers.behaviour import ERRORS, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE, CHARLIE
from tests.servers.waiting import wait_for
from tests.webhooks.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    with Receiver() as opened:
        settings.WEBHOOK_OWN_HOSTS = [opened.host]
        yield opened


def hook_of(user: User, receiver: Receiver, *events: str) -> Webhook:
    wanted = events or ("message.completed", "run.failed")
    return create_webhook(user=user, url=receiver.url, events=wanted, now=clock.now())[0]


def fail_a_run(user: User) -> Any:
    """Start a run and interrupt it, because a run that is stopped before it begins has not failed."""
    from chatapp.runs.actions.endings import interrupt_run
    from chatapp.runs.models import Run

    conversation = new_conversation(user, "A chat")
    receipt = send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=NewMessage("The word is XYLOPHONE."),
        model=None,
        now=clock.now(),
    )
    run = Run.objects.get(pk=receipt.run_id)
    assert interrupt_run(run_id=run.pk, fence=run.fence, now=clock.now())
    return receipt


def test_deliveries_are_stored_in_the_transaction_of_their_events(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver)
    with transaction.atomic():
        fail_a_run(alice)
        assert WebhookDelivery.objects.count() == 2
        transaction.set_rollback(True)
    assert WebhookDelivery.objects.count() == 0
    fail_a_run(alice)
    types = set(WebhookDelivery.objects.values_list("type", flat=True))
    assert types == {"message.completed", "run.failed"}


def test_a_webhook_gets_only_the_chosen_events_of_its_own_user(
    alice: User, charlie: User, receiver: Receiver
) -> None:
    hook_of(alice, receiver, "run.failed")
    hook_of(charlie, receiver)
    fail_a_run(alice)
    assert list(WebhookDelivery.objects.values_list("type", "webhook__user__email")) == [
        ("run.failed", alice.email)
    ]


def test_a_webhook_gets_nothing_after_the_token_that_created_it_has_expired(
    alice: User, receiver: Receiver
) -> None:
    token, _ = create_token(user=alice, name="", scopes=["chat"])
    create_webhook(user=alice, url=receiver.url, events=["run.failed"], now=clock.now(), token_id=token.pk)
    fail_a_run(alice)
    waiting = WebhookDelivery.objects.get().pk
    ApiToken.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    sending.deliver(waiting)
    fail_a_run(alice)
    assert WebhookDelivery.objects.count() == 1
    wake_waiting()
    assert not Webhook.objects.exists()
    assert not receiver.received


@pytest.mark.parametrize("waits_for", ["user", "conversation"])
def test_a_delivery_of_an_inactive_user_or_trashed_conversation_uses_up_no_attempt(
    alice: User, receiver: Receiver, waits_for: str
) -> None:
    hook_of(alice, receiver, "run.failed")
    conversation = Conversation.objects.get(pk=fail_a_run(alice).conversation_id)
    delivery = WebhookDelivery.objects.get()
    if waits_for == "user":
        User.objects.filter(pk=alice.pk).update(is_active=False)
    else:
        move_to_trash(alice, str(conversation.pk), days=30, now=clock.now())
    sending.deliver(delivery.pk)
    assert due_deliveries(clock.now() + timedelta(days=1)) == []
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("pending", 0)
    if waits_for == "user":
        User.objects.filter(pk=alice.pk).update(is_active=True)
    else:
        restore(alice, str(conversation.pk), now=clock.now())
    assert due_deliveries(clock.now()) == [delivery.pk]
    sending.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("delivered", 1)


def test_a_delivery_is_retried_after_growing_pauses_and_then_fails(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    delivery, now = WebhookDelivery.objects.get(), clock.now()
    for number, pause in enumerate(WebhookDelivery.PAUSES, start=1):
        assert claim_delivery(delivery_id=delivery.pk, now=now)
        assert not claim_delivery(delivery_id=delivery.pk, now=now)  # by another worker
        delivery.refresh_from_db()
        assert delivery.attempts == number
        record_attempt(delivery=delivery, status_code=500, error="The address answered 500.", now=now)
        delivery.refresh_from_db()
        assert delivery.next_attempt_at == now + pause
        assert due_deliveries(now) == []
        now = delivery.next_attempt_at
    assert claim_delivery(delivery_id=delivery.pk, now=now)
    delivery.refresh_from_db()
    record_attempt(delivery=delivery, status_code=500, error="The address answered 500.", now=now)
    delivery.refresh_from_db()
    assert delivery.state == "failed"
    assert due_deliveries(now + timedelta(days=3)) == []
    assert due_deliveries(send_again(delivery=delivery, now=now).next_attempt_at) == [delivery.pk]


@pytest.mark.django_db(transaction=True)
def test_a_late_failure_does_not_end_a_delivery_that_is_sent_again(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    delivery, now = WebhookDelivery.objects.get(), clock.now()
    last = len(WebhookDelivery.PAUSES) + 1
    WebhookDelivery.objects.update(attempts=last)
    send_again(delivery=WebhookDelivery.objects.get(), now=now)
    assert claim_delivery(delivery_id=delivery.pk, now=now)
    delivery.attempts = last
    record_attempt(delivery=delivery, status_code=500, error="The address answered 500.", now=now)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    record_attempt(delivery=delivery, status_code=200, error="", now=now)
    delivery.refresh_from_db()
    assert delivery.state == "delivered"


def test_a_user_has_one_attempt_in_progress_at_a_time(alice: User, bob: User, receiver: Receiver) -> None:
    """Otherwise the slow addresses of one user could block all workers."""
    for user in (alice, bob):
        hook_of(user, receiver, "run.failed")
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    fail_a_run(bob)
    now = clock.now()
    first, second = WebhookDelivery.objects.filter(webhook__user=alice)
    assert claim_delivery(delivery_id=first.pk, now=now)
    sending.deliver(second.pk)
    assert not receiver.received
    assert claim_delivery(delivery_id=WebhookDelivery.objects.get(webhook__user=bob).pk, now=now)
    first.refresh_from_db()
    record_attempt(delivery=first, status_code=204, error="", now=now)
    assert due_deliveries(now) == [second.pk]
    assert claim_delivery(delivery_id=second.pk, now=now)
    assert not claim_delivery(delivery_id=first.pk, now=now + WebhookDelivery.LEASE / 2)
    # The lease of a lost worker has expired.
    assert claim_delivery(delivery_id=second.pk, now=now + WebhookDelivery.LEASE)


def test_the_end_of_an_attempt_wakes_a_worker_for_the_next_one(
    alice: User, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    hook_of(alice, receiver, "message.completed", "run.failed")
    fail_a_run(alice)
    first, _ = WebhookDelivery.objects.order_by("pk")
    for waking in (1, 0):
        with django_capture_on_commit_callbacks() as callbacks:
            sending.deliver(first.pk)
        assert len(callbacks) == waking
        first = WebhookDelivery.objects.order_by("pk")[1]
    assert len(receiver.received) == 2


def test_an_unresponsive_address_gets_one_request_for_all_due_deliveries(
    alice: User, receiver: Receiver
) -> None:
    hook_of(alice, receiver, "run.failed")
    for _ in range(3):
        fail_a_run(alice)
    for number, pause in enumerate(WebhookDelivery.PAUSES, start=1):
        before = clock.now()
        WebhookDelivery.objects.update(next_attempt_at=before)
        receiver.answers.append(None)
        for key in WebhookDelivery.objects.values_list("pk", flat=True):
            sending.deliver(key)
        assert len(receiver.received) == number
        for row in WebhookDelivery.objects.all():
            assert (row.state, row.attempts, row.status_code) == ("pending", number, None)
            assert row.error.startswith("The address does not answer")
            assert before + pause <= row.next_attempt_at <= clock.now() + pause
    WebhookDelivery.objects.update(next_attempt_at=clock.now())
    receiver.answers.append(None)
    sending.deliver(WebhookDelivery.objects.all()[0].pk)
    assert set(WebhookDelivery.objects.values_list("state", "attempts")) == {
        ("failed", len(WebhookDelivery.PAUSES) + 1)
    }


def test_new_deliveries_wait_while_an_address_rests_and_are_due_once_it_responds(
    alice: User, receiver: Receiver
) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    old, now = WebhookDelivery.objects.get(), clock.now()
    WebhookDelivery.objects.update(attempts=len(WebhookDelivery.PAUSES) - 1)
    receiver.answers.append(None)
    sending.deliver(old.pk)
    fail_a_run(alice)
    new = WebhookDelivery.objects.exclude(pk=old.pk).get()
    sending.deliver(new.pk)
    assert len(receiver.received) == 1
    # A new delivery waits for less time than one with many attempts.
    assert due_deliveries(now + WebhookDelivery.LONGEST_REST / 2) == []
    assert due_deliveries(clock.now() + WebhookDelivery.LONGEST_REST) == [new.pk]
    send_again(delivery=WebhookDelivery.objects.get(pk=old.pk), now=clock.now())
    sending.deliver(old.pk)
    assert due_deliveries(clock.now()) == [new.pk]


def test_a_slow_address_rests_and_still_gets_all_deliveries(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    for _ in range(3):
        fail_a_run(alice)
    first, refused, _ = WebhookDelivery.objects.order_by("pk")
    refusal = "The address answered 500."
    WebhookDelivery.objects.filter(pk=refused.pk).update(attempts=1, error=refusal)
    now, took = clock.now(), timedelta(seconds=14)
    assert claim_delivery(delivery_id=first.pk, now=now)
    first.refresh_from_db()
    record_attempt(delivery=first, status_code=204, error="", now=now, took=took)
    assert due_deliveries(now + took * 1.9) == []
    rows = WebhookDelivery.objects.order_by("pk").values_list("state", "attempts", "error")
    assert list(rows) == [("delivered", 1, ""), ("pending", 1, refusal), ("pending", 0, "")]
    # A new delivery waits as well, even if it is the only one.
    WebhookDelivery.objects.exclude(pk=first.pk).delete()
    fail_a_run(alice)
    new = WebhookDelivery.objects.exclude(pk=first.pk).get()
    assert due_deliveries(now + took * 1.9) == []
    assert due_deliveries(now + took * 2) == [new.pk]
    assert claim_delivery(delivery_id=new.pk, now=now + took * 2)
    new.refresh_from_db()
    record_attempt(delivery=new, status_code=204, error="", now=now + took * 2)
    fail_a_run(alice)
    assert len(due_deliveries(clock.now() + took * 2)) == 1


def test_an_address_that_is_slow_to_refuse_rests_like_an_unresponsive_one(
    alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook_of(alice, receiver, "run.failed")
    for _ in range(2):
        fail_a_run(alice)
    monkeypatch.setattr(actions, "SLOW", timedelta(0))
    receiver.answers.append(504)
    sending.deliver(WebhookDelivery.objects.order_by("pk")[0].pk)
    assert due_deliveries(clock.now()) == []
    assert list(WebhookDelivery.objects.order_by("pk").values_list("attempts", "status_code")) == [
        (1, 504),
        (1, None),
    ]
    told = "The address does not answer within 0 s. The address answered 504."
    assert set(WebhookDelivery.objects.values_list("error", flat=True)) == {told}


def test_an_address_that_refuses_one_event_gets_the_others(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    fail_a_run(alice)
    receiver.answers.append(500)
    for key in WebhookDelivery.objects.order_by("pk").values_list("pk", flat=True):
        sending.deliver(key)
    assert list(WebhookDelivery.objects.order_by("pk").values_list("state", flat=True)) == [
        "pending",
        "delivered",
    ]


def test_a_message_forgotten_before_its_delivery_is_sent_without_its_text(
    alice: User, receiver: Receiver
) -> None:
    hook_of(alice, receiver, "message.completed")
    receipt = fail_a_run(alice)
    delete_message(alice, receipt.conversation_id, receipt.answer_id, now=clock.now())
    sending.deliver(WebhookDelivery.objects.get().pk)
    [told] = receiver.received
    assert told.body["data"]["message"]["forgotten"] is True
    assert b"XYLOPHONE" not in told.raw


def test_a_delivery_whose_event_is_deleted_fails_at_once(
    alice: User, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    hook_of(alice, receiver)
    fail_a_run(alice)
    gone, other = WebhookDelivery.objects.order_by("pk")
    Event.objects.filter(conversation=gone.conversation_id, seq=gone.seq).delete()
    with django_capture_on_commit_callbacks() as callbacks:
        sending.deliver(gone.pk)
    gone.refresh_from_db()
    assert (gone.state, gone.attempts, gone.error) == ("failed", 1, sending.GONE)
    assert not receiver.received
    assert due_deliveries(clock.now()) == [other.pk]
    assert len(callbacks) == 1


def test_trashing_a_conversation_as_its_delivery_begins_blocks_no_other_delivery(
    alice: User,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    hook_of(alice, receiver, "run.failed")
    trashed = fail_a_run(alice).conversation_id
    delivery = WebhookDelivery.objects.get()
    WebhookDelivery.objects.update(attempts=1, error="The address answered 500.")
    fail_a_run(alice)
    other = WebhookDelivery.objects.exclude(pk=delivery.pk).get()

    def claim_and_move(**given: Any) -> bool:
        is_claimed = claim_delivery(**given)
        move_to_trash(alice, str(trashed), days=30, now=clock.now())
        return is_claimed

    with monkeypatch.context() as patched, django_capture_on_commit_callbacks() as callbacks:
        patched.setattr(sending, "claim_delivery", claim_and_move)
        sending.deliver(delivery.pk)
    assert any("webhooks" in str(callback) for callback in callbacks)
    sending.deliver(other.pk)
    assert len(receiver.received) == 1
    restore(alice, str(trashed), now=clock.now())
    delivery.refresh_from_db()
    assert (delivery.attempts, delivery.error) == (1, "The address answered 500.")
    assert due_deliveries(clock.now()) == [delivery.pk]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://localhost:1/"])
def test_nothing_is_sent_to_an_internal_address(alice: User, settings: Any, url: str) -> None:
    settings.WEBHOOK_HOSTS, settings.WEBHOOK_OWN_HOSTS = ["*", "localhost:1"], []
    create_webhook(user=alice, url=url, events=["run.failed"], now=clock.now())
    fail_a_run(alice)
    sending.deliver(WebhookDelivery.objects.get().pk)
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == "pending"
    assert "always forbidden" in delivery.error or "not a public address" in delivery.error


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "10.0.0.1", "[::1]", "[::ffff:192.168.0.1]", "localhost", "2130706433"]
)
def test_an_internal_address_is_rejected_on_input(settings: Any, host: str) -> None:
    settings.WEBHOOK_HOSTS, settings.WEBHOOK_OWN_HOSTS = ["*"], []
    with pytest.raises(InvalidInput, match=r"always forbidden|not a public address"):
        run_apart(sending.check_url(f"http://{host}/"))


def test_a_host_name_that_does_not_resolve_yet_is_accepted(settings: Any) -> None:
    settings.WEBHOOK_HOSTS = ["*"]
    run_apart(sending.check_url("http://hooks.invalid/"))


@pytest.mark.django_db(transaction=True)
def test_redirects_are_not_followed(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    receiver.answers.append(302)
    sending.deliver(WebhookDelivery.objects.get().pk)
    assert len(receiver.received) == 1
    assert WebhookDelivery.objects.get().error == "The address answered 302."


def test_old_deliveries_are_deleted_from_the_log(alice: User, receiver: Receiver) -> None:
    hook_of(alice, receiver, "run.failed")
    fail_a_run(alice)
    long_ago = clock.now() - timedelta(days=31)
    WebhookDelivery.objects.update(state="delivered", created_at=long_ago)
    wake_waiting()
    assert WebhookDelivery.objects.count() == 0


def signed_by(secret: str, headers: dict[str, str], raw: bytes) -> bool:
    """Check a signature as standardwebhooks.com describes it for receivers."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in headers["webhook-signature"].split(" ")


def test_a_running_service_delivers_events_to_an_address(start_service: ServiceStarter) -> None:
    with ModelServer() as model, Receiver() as receiver:
        service = start_service(
            OPENAI_BASE_URL=model.base_url, LLM_MODEL="test-model", WEBHOOK_OWN_HOSTS=receiver.host
        )
        api, other = service.client_of(ALICE), service.client_of(CHARLIE)
        made = api.post("/api/v1/webhooks", json={"url": receiver.url})
        assert made.status_code == 201
        hook = made.json()
        listed = api.get("/api/v1/webhooks").json()["items"]
        assert [row["id"] for row in listed] == [hook["id"]]
        assert "secret" not in listed[0]
        log = f"/api/v1/webhooks/{hook['id']}/deliveries"

        receiver.answers.append(500)
        model.script(says("Hello, Alice."), ERRORS["wrong_key"]())
        chat = api.post("/api/v1/conversations", json={}).json()["id"]
        messages = f"/api/v1/conversations/{chat}/messages"
        api.post(messages, json={"content": "Hello, the number is 4711."})
        [first] = receiver.wait_for("message.completed")
        assert first.body["data"]["message"]["content"] == "Hello, Alice."
        assert signed_by(hook["secret"], first.headers, first.raw)
        assert not signed_by(hook["secret"], first.headers, first.raw + b" ")

        def refused() -> Any:
            return [row for row in api.get(log).json()["items"] if row["status_code"] == 500]

        [waiting] = wait_for(refused, what="a delivery that was refused")
        assert waiting["attempts"] >= 1
        api.post(f"{log}/{waiting['id']}/redeliver")
        [_, again] = receiver.wait_for("message.completed", 2)[:2]
        assert again.headers["webhook-id"] == first.headers["webhook-id"] == waiting["id"]

        assert api.post(messages, json={"content": "Now fail."}).status_code == 502
        [failed] = receiver.wait_for("run.failed")
        assert failed.body["data"]["error"]["category"] == "auth"
        api.post(f"/api/v1/conversations/{chat}/compact", json={"wait": True})
        assert receiver.wait_for("compact")[0].body["data"]["state"] == "done"
        assert receiver.wait_for("memory.written")[0].body["data"]["preview"]

        assert other.get(log).status_code == 404
        assert other.post(f"{log}/{waiting['id']}/redeliver").status_code == 404
        assert other.delete(f"/api/v1/webhooks/{hook['id']}").status_code == 404
        assert other.get("/api/v1/webhooks").json()["items"] == []
        assert api.delete(f"/api/v1/webhooks/{hook['id']}").status_code == 204
        assert api.get(log).status_code == 404

        for url in ("http://127.0.0.1:1/", "ftp://example.com/", "http://user@example.com/", "nonsense"):
            wrong = api.post("/api/v1/webhooks", json={"url": url})
            assert wrong.status_code == 422, url
            assert wrong.json()["error"]["details"][0]["field"] == "url"
        chatting = service.client(service.token_of(ALICE, "chat"))
        asked = {"url": receiver.url, "events": ["memory.written"]}
        assert chatting.post("/api/v1/webhooks", json=asked).status_code == 403
        made = chatting.post("/api/v1/webhooks", json={"url": receiver.url}).json()
        assert "memory.written" not in made["events"]
