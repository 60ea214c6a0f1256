"""The client of a WebSocket in the tests, which gives a busy machine the time to open it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from websockets.sync import client

from tests.servers.waiting import PATIENCE_S

connect = partial(client.connect, open_timeout=PATIENCE_S)


def receive(socket: client.ClientConnection, *types: str) -> dict[str, Any]:
    """Return the next frame that is of one of `types`.

    What other conversations of the same person do, such as those of an earlier test, is told to each of their sockets.
    """
    while True:
        frame: dict[str, Any] = json.loads(socket.recv(timeout=PATIENCE_S))
        if frame["type"] in types:
            return frame
