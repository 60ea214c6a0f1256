"""The client address and scheme of a request behind trusted proxies."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from chatapp.operations.serving.forwarded import client_address, read_claims

PROXIES = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        (b"8.8.8.8", "8.8.8.8"),
        (b"6.6.6.6, 8.8.8.8", "8.8.8.8"),
        (b"8.8.8.8, 10.1.1.1", "8.8.8.8"),
        (b"10.2.2.2, 10.1.1.1", "10.2.2.2"),
        (b"2001:db8::1, fd00::2", "2001:db8::1"),
        (b"8.8.8.8:41230, 10.1.1.1:80", "8.8.8.8"),
        (b"[2001:db8::1]:41230, [fd00::2]", "2001:db8::1"),
        (b"nonsense", None),
        (b"nonsense, 10.1.1.1", "10.1.1.1"),
        (b"", None),
    ],
)
def test_the_client_is_the_last_address_that_is_not_a_proxy(chain, client):
    assert client_address(chain, PROXIES) == client


def test_a_proxy_that_forwards_no_address_is_the_client():
    scope = {"type": "http", "client": ["10.1.1.1", 5], "headers": [(b"host", b"x")], "root_path": "/claimed"}
    read = read_claims(scope, PROXIES)
    assert (read["client"], read["scheme"], read["root_path"]) == (["10.1.1.1", 5], "http", "")


def test_a_socket_behind_tls_is_secure():
    scope = {"type": "websocket", "client": ["10.1.1.1", 5], "headers": [(b"x-forwarded-proto", b"https")]}
    assert read_claims(scope, PROXIES)["scheme"] == "wss"
