"""A process that leaves a group while a reader comes back stays in it, in whatever order Redis is told."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.realtime import processes
from chatapp.realtime.processes import OtherProcesses


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
