"""Smaller windows that a provider names: where they apply, for how long, and how operators see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.context.policies import rules_for
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.providers.actions import note_named_window, save_model_config
from chatapp.providers.models import ModelConfig
from chatapp.providers.named_windows import BELIEVED_FOR, applicable_window, describe_named_window

ENTERED, NAMED = 32_000, 9_000
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def window_of(config: ModelConfig, conversation: Conversation | None = None) -> int:
    config.refresh_from_db()
    return rules_for(config, conversation).budget.context_size


def note(config: ModelConfig, conversation: Conversation, named_by: str, *, days_ago: int = 0) -> None:
    note_named_window(
        config=config,
        conversation_id=conversation.pk,
        tokens=NAMED,
        named_by=named_by,
        now=clock.now() - timedelta(days=days_ago),
    )
    conversation.refresh_from_db()


@pytest.fixture
def config(db: None) -> ModelConfig:
    return ModelConfig.objects.create(name="M", model_id="m", context_size=ENTERED, is_default=True)


@pytest.fixture
def conversations(config: ModelConfig, alice: User) -> list[Conversation]:
    return [Conversation.objects.create(user=alice, last_activity_at=NOW) for _ in range(2)]


def test_a_named_window_applies_to_its_conversation_at_once_and_to_all_if_repeated(
    config: ModelConfig, conversations: list[Conversation], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = conversations
    note(config, first, "run 1")
    note(config, first, "run 1")  # a second refusal in the same run
    assert (window_of(config, first), window_of(config, second)) == (NAMED, ENTERED)
    assert not caplog.records
    note(config, first, "run 2")
    assert (window_of(config, first), window_of(config, second), window_of(config)) == (NAMED, NAMED, NAMED)
    assert "9000 tokens again" in caplog.text
    assert "2 times; used until" in describe_named_window(config.named_window, clock.now())


def test_a_named_window_expires_after_a_day(config: ModelConfig, conversations: list[Conversation]) -> None:
    first, second = conversations
    note(config, first, "run 1", days_ago=2)
    note(config, second, "run 2", days_ago=2)
    assert (window_of(config, first), window_of(config)) == (ENTERED, ENTERED)
    note(config, first, "run 3")
    assert (window_of(config, first), window_of(config)) == (NAMED, ENTERED), "it begins anew"
    stored = config.named_window
    assert applicable_window({}, stored, clock.now()) == NAMED
    assert applicable_window({}, stored, clock.now() + BELIEVED_FOR) is None


def test_a_window_that_an_operator_enters_replaces_a_named_window(
    config: ModelConfig, conversations: list[Conversation]
) -> None:
    for number, conversation in enumerate(conversations):
        note(config, conversation, f"run {number}")
    assert window_of(config) == NAMED
    config.context_size = 20_000
    save_model_config(config=config)
    assert window_of(config) == 20_000


def test_the_admin_panel_shows_a_named_window(
    admin_client: Client, config: ModelConfig, conversations: list[Conversation]
) -> None:
    for number, conversation in enumerate(conversations):
        note(config, conversation, f"run {number}")
    page = admin_client.get(f"/admin/chatapp/modelconfig/{config.pk}/change/").content.decode()
    assert "The provider reported a window of 9,000, 2 times; used until" in page


def test_the_fast_model_of_the_environment_has_a_window_of_its_own(db: None, settings: object) -> None:
    settings.LLM_CONTEXT_SIZE, settings.FAST_LLM_CONTEXT_SIZE = 64_000, 16_000  # type: ignore[attr-defined]
    main = ModelConfig(model_id="m", origin=ModelConfig.Origin.ENVIRONMENT)
    fast = ModelConfig(model_id="f", origin=ModelConfig.Origin.ENVIRONMENT_FAST)
    assert [rules_for(row).budget.context_size for row in (main, fast)] == [64_000, 16_000]
    settings.FAST_LLM_CONTEXT_SIZE = 0  # type: ignore[attr-defined]
    assert rules_for(fast).budget.context_size == 64_000
