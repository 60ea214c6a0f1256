"""The client of a WebSocket in the tests, which gives a busy machine the time to open it."""

from __future__ import annotations

from functools import partial

from websockets.sync import client

from tests.servers.waiting import PATIENCE_S

connect = partial(client.connect, open_timeout=PATIENCE_S)
