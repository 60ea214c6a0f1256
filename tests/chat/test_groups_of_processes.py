"""Processes that tell each other what happens: those of one deployment alone, in whatever order Redis is told."""

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


async def test_a_group_that_is_wanted_again_while_it_is_left_is_joined_again(
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
    """Return the layer of a deployment with this REDIS_URL."""
    script = "import json; from chatapp import settings; print(json.dumps(settings.CHANNEL_LAYERS))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        cwd=ROOT,
        env={**os.environ, "REDIS_URL": redis_url},
        capture_output=True,
    )
    return RedisPubSubChannelLayer(**json.loads(done.stdout)["default"]["CONFIG"])


async def test_a_copy_of_an_installation_in_another_database_of_redis_hears_nothing_of_it(
    redis: Redis,
) -> None:
    """Its conversations have the same ids: who lost access since the copy was made would read along in it."""
    original, copy = layer_of(redis.new_database()), layer_of(redis.new_database())
    channel = await copy.new_channel()
    await copy.group_add("conversation.1", channel)
    heard: list[str] = []
    receiving = asyncio.ensure_future(copy.receive(channel))
    # The subscription may take effect a moment after it was asked for.
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
