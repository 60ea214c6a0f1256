"""A browser's session: cookies, CSRF token and origin."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.servers.people import PASSWORD
from tests.servers.service import Service


class BrowserSession:
    def __init__(self, service: Service, email: str) -> None:
        self.service = service
        self.client = service.client()
        page = self.client.get("/accounts/login/")
        assert page.status_code == 200, page.text[:300]
        answer = self.post("/accounts/login/", {"login": email, "password": PASSWORD})
        assert answer.status_code == 302, answer.text[:300]

    @property
    def csrf_token(self) -> str:
        return str(self.client.cookies["csrftoken"])

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())

    def post(self, path: str, form: dict[str, Any] | None = None) -> httpx2.Response:
        data = {**(form or {}), "csrfmiddlewaretoken": self.csrf_token}
        return self.client.post(path, data=data, headers={"Origin": self.service.url})

    def call(self, method: str, path: str, **fields: Any) -> httpx2.Response:
        headers = {"Origin": self.service.url, "X-CSRFToken": self.csrf_token}
        return self.client.request(method, path, json=fields or None, headers=headers)

    def sign_out(self) -> None:
        assert self.post("/accounts/logout/").status_code == 302
