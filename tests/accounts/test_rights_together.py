"""The rights of many sockets are read in few queries, with the same result as one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from chatapp.accounts.actions import create_token
from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.selectors import SignIn, is_still_signed_in, still_signed_in
from chatapp.operations import clock

pytestmark = pytest.mark.django_db


def session_of(user: User) -> SignIn:
    client = Client()
    client.force_login(user)
    return SignIn(user.pk, client.session.session_key)


def token_of(user: User) -> SignIn:
    token, _ = create_token(user=user, name="program", scopes=["chat"])
    return SignIn(user.pk, None, token.pk)


def test_rights_read_together_equal_those_read_one_by_one(
    alice: User, bob: User, charlie: User, django_assert_max_num_queries
) -> None:
    kept = [session_of(alice), token_of(alice), SignIn(alice.pk), session_of(bob), token_of(bob)]
    other_password = session_of(charlie)
    charlie.set_password("quite another one")
    charlie.save()
    expired = token_of(bob)
    ApiToken.objects.filter(pk=expired.token_id).update(expires_at=clock.now() - timedelta(seconds=1))
    lost = [other_password, expired, SignIn(alice.pk, "no such session"), SignIn(bob.pk, kept[0].session_key)]
    asked = {*kept, *lost}
    assert {each for each in asked if is_still_signed_in(*each)} == set(kept)
    assert still_signed_in(asked) == set(kept)
    with django_assert_max_num_queries(3):
        still_signed_in(set(kept))


def test_a_deactivated_user_is_signed_out_everywhere(alice: User) -> None:
    asked = {session_of(alice), token_of(alice), SignIn(alice.pk)}
    alice.is_active = False
    alice.save()
    assert still_signed_in(asked) == set()
