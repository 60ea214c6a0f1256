"""The ASGI application for HTTP and sockets."""

from __future__ import annotations

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
django.setup(set_prefix=False)

# Only after the set-up, because these read the settings or import models.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from chatapp import urls as urls  # noqa: E402 # now, not on the first request
from chatapp.accounts.socket_auth import BearerAuth, OriginCheck  # noqa: E402
from chatapp.operations.http.request_metrics import measure_requests  # noqa: E402
from chatapp.operations.monitoring.logs import name_requests  # noqa: E402
from chatapp.operations.serving.file_streams import Handler  # noqa: E402
from chatapp.realtime.consumer import ChatConsumer  # noqa: E402


async def refuse_socket(scope: Any, receive: Any, send: Any) -> None:
    """Refuse the handshake at a path that has no socket."""
    await send({"type": "websocket.close", "code": 4404})


http_application = Handler()
sockets = URLRouter(
    [
        path("ws/chat", ChatConsumer.as_asgi()),
        re_path("", refuse_socket),  # type: ignore[arg-type] # channels leads to applications, not to views
    ]
)
application = name_requests(
    ProtocolTypeRouter(
        {
            "http": measure_requests(http_application),
            "websocket": OriginCheck(AuthMiddlewareStack(BearerAuth(sockets))),
        }
    )
)
