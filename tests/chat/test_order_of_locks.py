"""Who writes several rows locks them in one order, so that no two wait for each other. What forgetting locks is in
`forgetting/test_order_of_locks.py`. SQLite has but one writer at a time."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.operations.editions import keep
from chatapp.providers.calibration import note_token_counts, store_token_counts
from chatapp.providers.models import ModelConfig
from tests.blocking import check_no_wait

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_two_who_change_the_configuration_do_not_wait_for_each_other(alice: User) -> None:
    """Each would hold what it has changed: an operator who saves several models, and an answer that corrects the
    calibration of one, would wait in a circle."""
    model = ModelConfig.objects.create(name="Large", model_id="large")
    note_token_counts(model.pk, 100, 120)
    assert not keep("agents", Agent.objects.count)
    check_no_wait(store_token_counts, lambda: Agent.objects.create(name="Porter"))
    assert ModelConfig.objects.get(pk=model.pk).token_ratio_samples
    assert keep("agents", Agent.objects.count) == 1
