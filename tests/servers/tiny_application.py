"""A tiny ASGI application on our own Server: `python -m tests.servers.tiny_application PORT LIMITS PROXY …`.

LIMITS is a JSON object with fields of `Limits`. Valid tokens are "alice" and "bob", which are also the user names.

`/facts` returns the scope and the size of the body, `/endless` streams until the client stops reading, `/crash` raises.
The WebSocket echoes, floods on "flood 1000" and closes on "close 4001".
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from chatapp.operations.serving.listener import open_listener
from chatapp.operations.serving.server import Server
from chatapp.operations.serving.server_limits import Limits

CHUNK = b"x" * 65_536
STUCK_S = 3
"""A client that reads nothing for this long has stopped reading. A busy machine delays it less than that."""


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await echo(receive, send)
    elif scope["path"] == "/crash":
        raise ValueError("on purpose")
    elif scope["path"] == "/endless":
        await stream(receive, send)
    else:
        await tell_facts(scope, receive, send)


async def tell_facts(scope: dict[str, Any], receive: Any, send: Any) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message["body"]), message["more_body"]
    facts = {
        "size": size,
        "client": scope["client"][0],
        "scheme": scope["scheme"],
        "root_path": scope["root_path"],
        "headers": sorted(name.decode() for name, _ in scope["headers"]),
    }
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(facts).encode()})


async def stream(receive: Any, send: Any) -> None:
    """Send chunks until the client stops reading, then print how many it took."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    sent = 0
    try:
        while True:
            async with asyncio.timeout(STUCK_S):
                await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
            sent += 1
    except TimeoutError:
        print(f"the reader took {sent} chunks", flush=True)


async def echo(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        word, _, number = (message.get("text") or "").partition(" ")
        if word == "flood":
            await flood(int(number), send)
        elif word == "close":
            await send({"type": "websocket.close", "code": int(number), "reason": "as you wished"})
        else:
            await send({"type": "websocket.send", "text": message["text"]})
    print(f"closed with {message['code']}", flush=True)


async def flood(count: int, send: Any) -> None:
    try:
        for number in range(count):
            async with asyncio.timeout(STUCK_S):
                await send({"type": "websocket.send", "text": f"{number} ".ljust(10_000, "x")})
    except TimeoutError:
        print(f"the reader took {number} frames", flush=True)


async def find_user(scope: dict[str, Any]) -> str | None:
    name = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
    return name if name in {"alice", "bob"} else None


def main() -> None:
    listener = open_listener("127.0.0.1", int(sys.argv[1]))
    route_bytes = {b"/small": 1_000}
    limits = Limits(
        **{"request_bytes": 1_000_000, "frame_bytes": 100_000, "route_bytes": route_bytes}
        | json.loads(sys.argv[2])
    )
    server = Server(application, listener, limits=limits, authenticate=find_user, proxies=sys.argv[3:])
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    server.run()


if __name__ == "__main__":
    main()
