"""The tests' WebSocket client, with timeouts long enough for a busy machine."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from websockets.sync import client

from tests.servers.waiting import PATIENCE_S

connect = partial(client.connect, open_timeout=PATIENCE_S)


def receive(socket: client.ClientConnection, *types: str) -> dict[str, Any]:
    """Return the next frame of one of `types`.

    A socket also receives the events of the user's other conversations, such as those of an earlier test.
    """
    while True:
        frame: dict[str, Any] = json.loads(socket.recv(timeout=PATIENCE_S))
        if frame["type"] in types:
            return frame
