"""Sessions leave no rows after they end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client

from chatapp.accounts.models import User
from chatapp.operations import clock
from chatapp.operations.tasks import clean_up

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    key = browser.session.session_key
    UserSession.objects.create(user=user, session_key=key, ip="127.0.0.1")
    return browser


def test_the_clean_up_deletes_expired_sessions_and_records_of_missing_ones(alice: User, bob: User) -> None:
    expired, signed_out, lasting = signed_in(alice), signed_in(alice), signed_in(bob)
    Session.objects.filter(pk=expired.session.session_key).update(
        expire_date=clock.now() - timedelta(seconds=1)
    )
    signed_out.session.flush()
    for number in range(120):  # anonymous, and too many for one piece
        Session.objects.create(
            pk=f"stranger-{number}", session_data="", expire_date=clock.now() - timedelta(days=1)
        )
    clean_up()
    left = [lasting.session.session_key]
    assert list(Session.objects.values_list("pk", flat=True)) == left
    assert list(UserSession.objects.values_list("session_key", flat=True)) == left
