"""Deltas of an answer that are lost or repeated on their way to a client of the API for OpenAI's clients."""

from __future__ import annotations

import json

from chatapp.accounts.models import User
from chatapp.features.openai_api.turns import TurnFollower
from chatapp.realtime.hub import Frame
from chatapp.runs.actions.sending import Receipt


def reasoning(offset: int, text: str) -> Frame:
    return Frame(
        "c", "reasoning.delta", None, json.dumps({"message_id": "answer", "offset": offset, "text": text})
    )


async def test_reasoning_goes_on_after_a_lost_delta_and_repeats_nothing() -> None:
    follower = TurnFollower(User(), Receipt("c", "question", "run", "answer", 1))
    frames = [reasoning(0, "One "), reasoning(8, "three "), reasoning(8, "three four"), reasoning(10, "ree")]
    read = [item for frame in frames for item in await follower._read(frame)]
    assert [item.text for item in read if hasattr(item, "text")] == ["One ", "three ", "four"]
