"""Parses EMAIL_URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from chatapp.operations.configuration.environment import HOST_NAME, is_address, refuse, text, without_password

EXAMPLE = "smtps://user:password@host:465?from=chat@example.com"
MAILBOX = rf"[^@\s\"<>()]{{1,64}}@{HOST_NAME}"


@dataclass(frozen=True, slots=True)
class Mail:
    """Mail settings in Django's terms. Without a `backend`, no mail is sent."""

    backend: str = ""
    host: str = ""
    port: int = 0
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    use_ssl: bool = False
    use_starttls: bool = False
    sender: str = ""


def mail(name: str, *, may_print: bool) -> Mail:
    """Parse an address such as `smtps://user:password@host?from=chat@example.com`.

    With `smtp://` the connection must upgrade to TLS by STARTTLS, or mail fails. `tls=off` is for your own relay.
    `console:` prints mails, including their links, and needs `may_print`.
    """
    raw = text(name)
    if not raw:
        return Mail()
    if raw == "console:" and may_print:
        return Mail("django.core.mail.backends.console.EmailBackend", sender="palimpsest@localhost")
    # An invalid address has no parts and thus no sender. For some, urlsplit would raise ValueError.
    parts = urlsplit(raw if is_address(raw, ("smtp", "smtps")) else "")
    given = dict(parse_qsl(parts.query))
    is_good = parts.path in ("", "/") and not set(given) - {"from", "tls"}
    sender = given.get("from", "")
    if not is_good or not re.fullmatch(MAILBOX, sender) or given.get("tls", "off") != "off":
        example = EXAMPLE
        if raw.startswith("console"):
            example += ", or console: where DEBUG is true"
        refuse(name, f"must be an address such as {example}, not {without_password(raw)!r}.")
        return Mail()
    is_ssl = parts.scheme == "smtps"
    return Mail(
        "django.core.mail.backends.smtp.EmailBackend",
        parts.hostname or "",
        parts.port or (465 if is_ssl else 587),
        # The user is often an email address, whose "@" is encoded in a URL.
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        is_ssl,
        not is_ssl and "tls" not in given,
        sender,
    )
