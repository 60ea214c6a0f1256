"""Processes exchange events through Redis groups: only within one deployment, and with overlapping joins and leaves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from chatapp.realtime import processes
from chatapp.realtime.processes import OtherProcesses
from tests.environment import ROOT
from tests.servers.redis import Redis


class SlowLayer:
    """A channel layer whose `group_discard` takes effect late."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.may_discard = asyncio.Event()

    async def group_add(self, group: str, channel: str) -> None:
        self.members.add(group)

    async def group_discard(self, group: str, channel: str) -> None:
        await self.may_discard.wait()
        self.members.discard(group)


async def test_a_group_joined_again_while_it_is_being_left_stays_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = SlowLayer()
    monkeypatch.setattr(processes, "get_channel_layer", lambda: layer)
    others = OtherProcesses(lambda message: None)
    others._channel = "channel"
    await others.join("topic")
    leaving = asyncio.create_task(others.leave("topic"))
    await asyncio.sleep(0)
    await others.join("topic")
    layer.may_discard.set()
    await leaving
    assert layer.members == {"topic"}
    await others.leave("topic")
    assert layer.members == set()


def layer_of(redis_url: str) -> RedisPubSubChannelLayer:
    """Return the channel layer of a deployment with this REDIS_URL."""
    script = "import json; from chatapp import settings; print(json.dumps(settings.CHANNEL_LAYERS))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        cwd=ROOT,
        env={**os.environ, "REDIS_URL": redis_url},
        capture_output=True,
    )
    return RedisPubSubChannelLayer(**json.loads(done.stdout)["default"]["CONFIG"])


async def test_a_copy_of_a_deployment_in_another_redis_database_receives_only_its_own_messages(
    redis: Redis,
) -> None:
    """A copy has the same conversation ids, so users who have lost access to the original could read along there."""
    original, copy = layer_of(redis.new_database()), layer_of(redis.new_database())
    channel = await copy.new_channel()
    await copy.group_add("conversation.1", channel)
    heard: list[str] = []
    receiving = asyncio.ensure_future(copy.receive(channel))
    # The subscription may take effect with a delay.
    while len(heard) < 3:
        for name, layer in (("original", original), ("copy", copy)):
            await layer.group_send("conversation.1", {"by": name})
        await asyncio.wait([receiving], timeout=0.1)
        if receiving.done():
            heard.append(receiving.result()["by"])
            receiving = asyncio.ensure_future(copy.receive(channel))
    receiving.cancel()
    assert set(heard) == {"copy"}
    await original.flush()
    await copy.flush()
