"""Mail is sent over a real connection to the configured server. Without one, nothing that needs mail is offered."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from django.core.cache import cache
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_user
from chatapp.accounts.models import User
from chatapp.operations.configuration import environment
from chatapp.operations.configuration.mail_settings import mail

PASSWORD = "a long enough passphrase"
RESET = "/accounts/password/reset/"


class Mailbox(Message):
    """The mails that the server received."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[str] = []

    def handle_message(self, message) -> None:
        self.mails.append(f"{message['From']} {message['To']}\n{message.get_payload(decode=True).decode()}")


class AnyPort(Controller):
    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    mailbox = Mailbox()
    server = AnyPort(mailbox, hostname="127.0.0.1", port=0)
    server.start()
    try:
        yield mailbox, server.port
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def _quick(settings: Settings) -> Iterator[None]:
    settings.PUBLIC_URL = "https://chat.example.com"
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def dora(db: None) -> User:
    return create_user(email="dora@example.com", password=PASSWORD)


def use(settings: Settings, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    read = mail("EMAIL_URL", may_print=False)
    settings.HAS_MAIL = True
    settings.EMAIL_BACKEND = read.backend
    settings.EMAIL_HOST, settings.EMAIL_PORT = read.host, read.port
    settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = read.use_starttls, read.use_ssl
    settings.DEFAULT_FROM_EMAIL = read.sender


def test_a_password_can_be_reset_by_mail(
    dora: User,
    client: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    mailbox: tuple[Mailbox, int],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    box, port = mailbox
    use(settings, monkeypatch, f"smtp://127.0.0.1:{port}?tls=off&from=chat@example.com")
    assert RESET in client.get("/accounts/login/").content.decode()
    assert client.post(RESET, {"email": dora.email}, headers={"host": "127.0.0.1"}).status_code == 302
    [received] = box.mails
    assert received.startswith("chat@example.com dora@example.com")
    [link] = re.findall(r"https://chat\.example\.com(/accounts/password/reset/key/\S+)", received)
    page = client.get(link, follow=True)
    [(form, _)] = page.redirect_chain
    new = "another long passphrase"
    assert client.post(form, {"password1": new, "password2": new}).status_code == 302
    dora.refresh_from_db()
    assert dora.check_password(new)
    written = caplog.text + "".join(capfd.readouterr())
    assert link not in written


@pytest.mark.parametrize("tls", ["", "&tls=off"])
def test_a_mail_that_cannot_be_sent_is_reported_and_its_link_is_not_logged(
    dora: User,
    client: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    mailbox: tuple[Mailbox, int],
    caplog: pytest.LogCaptureFixture,
    tls: str,
) -> None:
    """Either the server offers no encryption, which is required by default, or its port is closed."""
    box, port = mailbox
    use(settings, monkeypatch, f"smtp://127.0.0.1:{1 if tls else port}?from=chat@example.com{tls}")
    answer = client.post(RESET, {"email": dora.email})
    assert answer.status_code == 503
    assert "could not be sent" in answer.content.decode()
    assert box.mails == []
    assert "A mail was not sent" in caplog.text
    assert "reset/key" not in caplog.text


def test_features_that_need_mail_are_not_offered_without_it(dora: User, client: Client) -> None:
    assert RESET not in client.get("/accounts/login/").content.decode()
    for answer in (client.get(RESET), client.post(RESET, {"email": dora.email})):
        assert answer.status_code == 404
        assert "sends no mail" in answer.content.decode()
    client.force_login(dora)
    assert "/accounts/email/" not in client.get("/accounts/password/change/").content.decode()


@pytest.mark.parametrize(
    "url",
    [
        "smtp://mail.example.com",
        "smtp://mail.example.com?from=nobody",
        "smtp://mail.example.com?from=a@b.c&tls=maybe",
        "smtp://mail.example.com/box?from=a@b.c",
        "http://mail.example.com?from=a@b.c",
        "smtp://?from=a@b.c",
        "smtp://me:geheim@mail.example.com:99999?from=a@b.c",
        "smtp://me:[geheim@mail.example.com?from=a@b.c",
        "smtp://mail.example.com?from=a@b.c%0aBcc:x@y.z",
        "console:",
    ],
)
def test_an_invalid_mail_url_is_reported_at_start_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    problems: list[str] = []
    monkeypatch.setattr(environment, "problems", problems)
    monkeypatch.setenv("EMAIL_URL", url)
    assert not mail("EMAIL_URL", may_print=False).backend
    [problem] = problems
    assert problem.startswith("EMAIL_URL must be an address such as smtps://")
    assert "geheim" not in problem


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtps://u:p%40ss@mail.example.com?from=a@b.c", (465, True, False, "p@ss")),
        ("smtp://mail.example.com?from=a@b.c", (587, False, True, "")),
        ("smtp://127.0.0.1:25/?from=a@b.c&tls=off", (25, False, False, "")),
    ],
)
def test_the_mail_url_determines_the_encryption(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: tuple[object, ...]
) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    read = mail("EMAIL_URL", may_print=False)
    assert (read.port, read.use_ssl, read.use_starttls, read.password) == expected


def test_mails_can_be_printed_when_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_URL", "console:")
    assert mail("EMAIL_URL", may_print=True).backend.endswith("console.EmailBackend")
