"""Writers of several rows lock them in one order, so that they cannot deadlock. The locks of forgetting are in
`forgetting/test_order_of_locks.py`. SQLite has one writer at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from agents.events import MessageCompleted
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.schemas.messages import message_shape
from chatapp.features.webhooks.actions import claim_delivery
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.operations.caching.editions import cached
from chatapp.operations.database.ids import new_id
from chatapp.providers.actions import ensure_first_model, offer_models
from chatapp.providers.calibration import note_token_counts, store_token_counts
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log
from tests.blocking import beside, check_no_wait, check_order
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_concurrent_changes_of_the_configuration_do_not_wait_for_each_other(alice: User) -> None:
    """Otherwise an operator who saves several models and an answer that corrects the calibration of one could
    deadlock."""
    model = ModelConfig.objects.create(name="Large", model_id="large")
    note_token_counts(model.pk, 100, 120)
    assert not cached("agents", Agent.objects.count)
    check_no_wait(store_token_counts, lambda: Agent.objects.create(name="Porter"))
    assert ModelConfig.objects.get(pk=model.pk).token_ratio_samples
    assert cached("agents", Agent.objects.count) == 1


def test_an_event_and_a_delivery_lock_the_webhooks_of_a_user_in_one_order(alice: User) -> None:
    """Two chats of a user may end at the same moment."""
    keys = sorted(new_id() for _ in range(2))
    for key in reversed(keys):
        Webhook.objects.create(
            pk=key, user=alice, url="https://example.com", events=["message.completed"], created_at=NOW
        )
    chat = new_conversation(alice)
    [said] = say(chat, "Noted.", role="assistant")
    told = MessageCompleted(conversation_id=str(chat.pk), at=NOW, message=message_shape(said))
    check_order(
        transaction.atomic(lambda: event_log.append(chat, told)),
        Webhook.objects.filter(pk=keys[0]),
        Webhook.objects.filter(pk=keys[1]),
    )
    assert WebhookDelivery.objects.count() == 2
    # A worker that claims one delivery uses the same order.
    told_first = WebhookDelivery.objects.get(webhook=keys[1]).pk
    check_order(
        lambda: claim_delivery(delivery_id=told_first, now=NOW + timedelta(days=1)),
        Webhook.objects.filter(pk=keys[0]),
        Webhook.objects.filter(pk=keys[1]),
    )


OLLAMA = "http://127.0.0.1:11434/v1"


def offer(**sizes: int) -> None:
    offer_models(origin=ModelConfig.Origin.OLLAMA, base_url=OLLAMA, sizes=sizes)


def test_offering_models_waits_for_a_change_of_models_without_locking_any_of_them() -> None:
    """Saving a model locks the Demo row on behalf of all models, and then waits for the model's own row."""
    ensure_first_model()
    offer(phi=4_096)
    check_order(
        lambda: offer(phi=8_192, llama=8_192),
        ModelConfig.objects.filter(origin=ModelConfig.Origin.BUILT_IN),
        ModelConfig.objects.filter(model_id="phi"),
    )


def test_two_processes_that_find_the_same_models_create_each_row_once() -> None:
    ensure_first_model()
    with beside(lambda: offer(phi=4_096, llama=4_096), lambda: offer(phi=4_096, llama=4_096)):
        pass
    assert ModelConfig.objects.filter(base_url=OLLAMA).count() == 2
