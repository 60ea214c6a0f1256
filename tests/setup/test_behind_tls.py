"""What an https address configures automatically: the allowed host, secure cookies and HSTS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.servers.service import Service

PROXIED = {"Host": "chat.example.com", "X-Forwarded-Proto": "https"}


@pytest.mark.parametrize("address", ["https://chat.example.com", "HTTPS://Chat.Example.com:443/"])
def test_an_https_address_configures_host_cookies_and_hsts(
    start_service: Callable[..., Service], address: str
) -> None:
    service = start_service(PUBLIC_URL=address, TRUSTED_PROXIES="127.0.0.1")
    page = service.client().get("/accounts/login/", headers=PROXIED)
    assert page.status_code == 200
    cookies = page.headers.get_list("set-cookie")
    assert cookies
    for cookie in cookies:
        assert cookie.startswith("__Host-")
        assert "; Secure" in cookie
        assert "; Path=/" in cookie
        assert "domain=" not in cookie.lower()
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    assert service.client().get("/accounts/login/", headers={"Host": "other.example"}).status_code == 400
