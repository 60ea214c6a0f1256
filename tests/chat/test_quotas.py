"""Limits on the sockets and frames of each user, and on the messages of each address."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from pytest_django.fixtures import Settings

from chatapp.accounts import rate_limits
from chatapp.accounts.models import User
from chatapp.operations.errors import RateLimited
from chatapp.realtime.consumer import ChatConsumer, FrameQuota
from chatapp.realtime.hub import hub
from tests.memory_store.rows import new_conversation
from tests.servers.waiting import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


class Socket(WebsocketCommunicator):
    def __init__(self, user: User, address: str = "127.0.0.1") -> None:
        super().__init__(ChatConsumer.as_asgi(), "/ws/chat")
        self.scope |= {"user": user, "client": [address, 0]}

    async def open(self) -> Socket:
        is_accepted, _ = await self.connect(timeout=PATIENCE_S)
        assert is_accepted
        return self

    async def tell(self, **frame: Any) -> dict[str, Any]:
        await self.send_to(text_data=json.dumps(frame))
        answer: dict[str, Any] = json.loads(await self.receive_from(timeout=PATIENCE_S))
        return answer

    async def close_code(self) -> int:
        while (message := await self.receive_output(timeout=PATIENCE_S))["type"] != "websocket.close":
            pass
        return int(message["code"])


async def test_a_user_has_a_limited_number_of_sockets(alice: User, bob: User, settings: Settings) -> None:
    settings.CONNECTIONS_PER_USER = 2
    await hub.start()
    try:
        first, second = await Socket(alice).open(), await Socket(alice).open()
        third = await Socket(alice).open()
        assert await third.close_code() == 4429
        his = await Socket(bob).open()
        assert (await his.tell(type="ping"))["type"] == "pong"
        await first.disconnect()
        again = await Socket(alice).open()
        assert (await again.tell(type="ping"))["type"] == "pong"
        for socket in (second, his, again):
            await socket.disconnect()
    finally:
        await hub.stop()


async def test_a_socket_over_its_quota_gets_errors_and_is_closed_if_it_goes_on_sending(
    alice: User, settings: Settings
) -> None:
    settings.FRAMES_PER_MINUTE = 3
    await hub.start()
    try:
        socket = await Socket(alice).open()
        answers = [await socket.tell(type="ping") for _ in range(6)]
        assert [answer["type"] for answer in answers] == ["pong"] * 3 + ["error"] * 3
        assert answers[-1]["code"] == "rate_limited"
        assert 1 <= int(answers[-1]["retry_after"]) <= 60
        await socket.send_to(text_data='{"type": "ping"}')
        assert await socket.close_code() == 4429
        await socket.disconnect()
    finally:
        await hub.stop()


async def test_an_address_has_one_message_limit_for_all_its_users(
    alice: User, bob: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MESSAGES_PER_MINUTE = 1
    monkeypatch.setattr(rate_limits, "USERS_BEHIND_ONE_ADDRESS", 1)
    sent = {"type": "message.send", "client_id": "k", "conversation_id": str(uuid4()), "content": "Hello"}
    await hub.start()
    try:
        sockets = [Socket(alice, "192.0.2.5"), Socket(bob, "192.0.2.5")]
        answers = [await (await socket.open()).tell(**sent) for socket in sockets]
        assert [answer["code"] for answer in answers] == ["not_found", "rate_limited"]
        for socket in sockets:
            await socket.disconnect()
    finally:
        await hub.stop()


@pytest.mark.parametrize("kind", ["message.send", "message.inject"])
async def test_a_socket_accepts_as_many_images_as_a_request(alice: User, kind: str) -> None:
    conversation = await sync_to_async(new_conversation)(alice)
    parts = [{"type": "image", "file_id": str(uuid4())} for _ in range(20)]
    sent = {"type": kind, "client_id": "k", "conversation_id": str(conversation.pk), "content": parts}
    await hub.start()
    try:
        socket = await Socket(alice).open()
        # None of these files exists, but first of all they are counted.
        answers = [await socket.tell(**sent, attachments=more) for more in ([], [str(uuid4())])]
        assert [answer["code"] for answer in answers] == ["not_found", "invalid"]
        assert answers[1]["message"] == "A message has at most 20 images."
        await socket.disconnect()
    finally:
        await hub.stop()


def test_each_minute_has_a_quota_of_its_own() -> None:
    quota = FrameQuota(2)
    for now in (100.0, 101.0):
        quota.count(now)
    with pytest.raises(RateLimited):
        quota.count(102.0)
    quota.count(161.0)
    assert not quota.is_flooded


def test_a_quota_of_zero_means_no_limit() -> None:
    quota = FrameQuota(0)
    for _ in range(10_000):
        quota.count(1.0)
    assert not quota.is_flooded
