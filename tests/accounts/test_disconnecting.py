"""Open connections end when the rights behind them do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from chatapp.accounts.models import User
from chatapp.realtime.hub import Frame, hub, user_topic

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("static_files")]
PASSWORD = "a long enough passphrase"


class Socket:
    """A connection of one user, as the hub sees it."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def deliver(self, topic: str, frame: Frame) -> None: ...

    def catch_up(self, conversation_id: str, last_seq: int) -> None: ...

    def close(self, reason: str) -> None:
        if not self.closed.done():
            self.closed.set_result(reason)


@asynccontextmanager
async def connected(*users: User) -> AsyncIterator[list[Socket]]:
    await hub.start()
    sockets = [Socket() for _ in users]
    topics = [user_topic(user.pk) for user in users]  # a deleted user has no id any more
    try:
        for topic, socket in zip(topics, sockets, strict=True):
            await hub.subscribe(socket, topic)
        yield sockets
    finally:
        for topic, socket in zip(topics, sockets, strict=True):
            await hub.unsubscribe(socket, topic)
        await hub.stop()


def sign_out(user: User) -> None:
    client = Client()
    client.force_login(user)
    client.post("/accounts/logout/")


def change_password(user: User) -> None:
    client = Client()
    user.set_password(PASSWORD)
    User.objects.filter(pk=user.pk).update(password=user.password)  # disconnects nobody
    client.force_login(user)
    form = {
        "oldpassword": PASSWORD,
        "password1": "another long passphrase",
        "password2": "another long passphrase",
    }
    client.post("/accounts/password/change/", form)


def end_other_sessions(user: User) -> None:
    user.set_password(PASSWORD)
    User.objects.filter(pk=user.pk).update(password=user.password)  # disconnects nobody
    client, other = Client(), Client()
    for browser in (client, other):
        browser.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    client.post("/accounts/sessions/")


def deactivate(user: User) -> None:
    user.is_active = False
    user.save(update_fields=["is_active"])


def lose_a_role(user: User) -> None:
    user.is_staff = not user.is_staff
    user.save()


@pytest.mark.parametrize(
    "lose_rights", [sign_out, change_password, end_other_sessions, deactivate, lose_a_role, User.delete]
)
async def test_connections_end_with_the_rights_behind_them(
    alice: User, bob: User, lose_rights: Callable[[User], object]
) -> None:
    async with connected(alice, bob) as (hers, his):
        await sync_to_async(lose_rights)(alice)
        assert await asyncio.wait_for(hers.closed, timeout=10) == "signed_out"
        assert not his.closed.done()


async def test_an_ordinary_change_leaves_connections_open(alice: User) -> None:
    async with connected(alice) as (hers,):
        alice.name = "Alice B."
        await sync_to_async(alice.save)(update_fields=["name"])
        await sync_to_async(deactivate)(await sync_to_async(User.objects.create_user)("other@example.com"))
        await asyncio.sleep(0)
        assert not hers.closed.done()
