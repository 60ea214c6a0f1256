"""Data of a single user is cached in each process and read again after every write, even by another program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from chatapp.accounts.models import User
from chatapp.long_term.models import MemoryPause, Profile
from chatapp.long_term.selectors.pauses import pauses_of
from chatapp.long_term.selectors.profile import profile_text
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations import clock
from chatapp.operations.caching.editions import Edition, edition_of_user, one_edition
from chatapp.operations.models import UserEdition
from tests.memory_store.rows import new_conversation

pytestmark = pytest.mark.django_db(transaction=True)


def begin_pause(user: User) -> None:
    MemoryPause.objects.create(user=user, began_at=clock.now())


def test_cached_data_of_a_user_is_not_read_again(
    alice: User, django_assert_num_queries: Callable[[int], Any]
) -> None:
    Profile.objects.create(user=alice, text="Alice keeps bees.")
    conversation = new_conversation(alice)

    def read() -> tuple[bool, str, bool]:
        return bool(pauses_of(alice.pk)), profile_text(conversation), bool(tombstones_of(alice.pk))

    edition = Edition("any", alice.pk, edition_of_user(alice.pk))
    with one_edition(edition):
        known = read()
        with django_assert_num_queries(0):
            assert read() == known == (False, "Alice keeps bees.", False)


def test_a_write_in_raw_sql_invalidates_the_cache_of_its_user_only(alice: User, bob: User) -> None:
    begin_pause(alice)
    before, of_bob = edition_of_user(alice.pk), edition_of_user(bob.pk)
    assert pauses_of(alice.pk)
    with connection.cursor() as cursor:  # as another program would
        cursor.execute("DELETE FROM chatapp_memorypause")
    assert not pauses_of(alice.pk)
    assert edition_of_user(alice.pk) != before
    assert edition_of_user(bob.pk) == of_bob


def test_data_that_is_rolled_back_is_not_cached(alice: User) -> None:
    with transaction.atomic():
        begin_pause(alice)
        assert pauses_of(alice.pk)
        transaction.set_rollback(True)
    assert not pauses_of(alice.pk)
    begin_pause(alice)
    assert pauses_of(alice.pk)


def test_each_change_in_a_transaction_invalidates_the_cache(alice: User) -> None:
    with transaction.atomic():
        begin_pause(alice)
        first = pauses_of(alice.pk)
        MemoryPause.objects.update(ended_at=clock.now())
    assert pauses_of(alice.pk) != first


def test_a_deleted_account_leaves_no_edition(alice: User) -> None:
    begin_pause(alice)
    assert UserEdition.objects.count() == 1
    alice.delete()
    assert not UserEdition.objects.exists()
