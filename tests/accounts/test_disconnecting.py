"""Connections are closed when their user loses the right to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import zip_longest
from typing import cast
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_token, delete_token
from chatapp.accounts.models import User
from chatapp.accounts.selectors import SignIn
from chatapp.realtime import rights
from chatapp.realtime.hub import Frame, holder_of, hub, user_topic
from chatapp.realtime.subscriptions import Connection
from tests.servers.waiting import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True)]
PASSWORD = "a long enough passphrase"


class Socket:
    """A connection of one user, as the hub sees it."""

    def __init__(self, holder: str = "") -> None:
        self.holder = holder
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def deliver(self, topic: str, frame: Frame) -> None: ...

    def catch_up(self, conversation_id: str, last_seq: int) -> None: ...

    def close(self, reason: str) -> None:
        if not self.closed.done():
            self.closed.set_result(reason)


@asynccontextmanager
async def connected(*users: User, holders: Sequence[str] = ()) -> AsyncIterator[list[Socket]]:
    await hub.start()
    sockets = [Socket(holder) for _, holder in zip_longest(users, holders, fillvalue="")]
    topics = [user_topic(user.pk) for user in users]  # read now, because a deleted user has no id
    try:
        for topic, socket in zip(topics, sockets, strict=True):
            await hub.subscribe(socket, topic)
        yield sockets
    finally:
        for topic, socket in zip(topics, sockets, strict=True):
            await hub.unsubscribe(socket, topic)
        await hub.stop()


def test_a_failed_check_of_rights_is_retried(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SOCKET_CHECK_S = 0.01
    outcomes: list[Exception | set[SignIn]] = [OperationalError("away"), ValueError("a bug"), set()]

    def look(_: object) -> set[SignIn]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(rights, "still_signed_in", look)

    async def closed_as() -> str:
        watch, socket = rights.RightsWatch(), Socket()
        watch.add(cast("Connection", socket), SignIn(uuid4()))
        try:
            return await asyncio.wait_for(socket.closed, PATIENCE_S)
        finally:
            watch.remove(cast("Connection", socket))

    assert async_to_sync(closed_as)() == "signed_out"
    assert caplog.text.count("The rights of sockets could not be checked") == 2


def change_password(user: User) -> None:
    client = Client()
    user.set_password(PASSWORD)
    User.objects.filter(pk=user.pk).update(password=user.password)  # sends no signal, disconnects nobody
    client.force_login(user)
    form = {
        "oldpassword": PASSWORD,
        "password1": "another long passphrase",
        "password2": "another long passphrase",
    }
    client.post("/accounts/password/change/", form)


def deactivate(user: User) -> None:
    user.is_active = False
    user.save(update_fields=["is_active"])


def lose_a_role(user: User) -> None:
    user.is_staff = not user.is_staff
    user.save()


@pytest.mark.parametrize("lose_rights", [change_password, deactivate, lose_a_role, User.delete])
async def test_connections_are_closed_when_their_user_loses_rights(
    alice: User, bob: User, lose_rights: Callable[[User], object]
) -> None:
    async with connected(alice, bob) as (hers, his):
        await sync_to_async(lose_rights)(alice)
        assert await asyncio.wait_for(hers.closed, timeout=10) == "signed_out"
        assert not his.closed.done()


def two_sessions(user: User) -> tuple[Client, Client]:
    user.set_password(PASSWORD)
    User.objects.filter(pk=user.pk).update(password=user.password)  # sends no signal, disconnects nobody
    browsers = Client(), Client()
    for browser in browsers:
        browser.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    return browsers


@pytest.mark.parametrize("address", ["/accounts/logout/", "/accounts/sessions/"])
async def test_a_session_that_ends_closes_its_own_connections_only(alice: User, address: str) -> None:
    browsers = await sync_to_async(two_sessions)(alice)
    holders = [holder_of(browser.cookies["sessionid"].value) for browser in browsers]
    async with connected(alice, alice, alice, holders=[*holders, "token:1"]) as (acting, other, program):
        await sync_to_async(browsers[0].post)(address)
        ended, staying = (acting, other) if "logout" in address else (other, acting)
        assert await asyncio.wait_for(ended.closed, timeout=10) == "signed_out"
        await asyncio.sleep(0)
        assert not staying.closed.done()
        assert not program.closed.done()


async def test_a_revoked_token_closes_its_own_connections_only(alice: User) -> None:
    tokens = [
        (await sync_to_async(create_token)(user=alice, name="ci", scopes=["chat"]))[0] for _ in range(2)
    ]
    holders = [holder_of(None, token.pk) for token in tokens]
    async with connected(alice, alice, holders=holders) as (revoked, other):
        await sync_to_async(delete_token)(user=alice, token_id=tokens[0].pk)
        assert await asyncio.wait_for(revoked.closed, timeout=10) == "signed_out"
        await asyncio.sleep(0)
        assert not other.closed.done()


async def test_an_ordinary_change_leaves_connections_open(alice: User) -> None:
    async with connected(alice) as (hers,):
        alice.name = "Alice B."
        await sync_to_async(alice.save)(update_fields=["name"])
        await sync_to_async(deactivate)(await sync_to_async(User.objects.create_user)("other@example.com"))
        await asyncio.sleep(0)
        assert not hers.closed.done()
