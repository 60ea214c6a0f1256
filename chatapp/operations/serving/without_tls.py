"""Imports daphne and twisted's server as if OpenSSL were missing, because a proxy terminates TLS."""

import sys

sys.modules["OpenSSL"] = None  # type: ignore[assignment] # it takes 5 MB

from daphne.http_protocol import HTTPFactory, WebRequest  # noqa: E402
from daphne.server import Server as DaphneServer  # noqa: E402
from daphne.server import twisted_loop  # noqa: E402
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol  # noqa: E402
from twisted.internet import reactor as twisted_reactor  # noqa: E402
from twisted.web.http import HTTPChannel  # noqa: E402

del sys.modules["OpenSSL"]

__all__ = [
    "DaphneServer",
    "HTTPChannel",
    "HTTPFactory",
    "WebRequest",
    "WebSocketFactory",
    "WebSocketProtocol",
    "twisted_loop",
    "twisted_reactor",
]
