"""Users that a service has before it starts, all created in one process."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from tests.servers.service import run_manage

PASSWORD = "correct horse battery"
ADA, ADMIN, ALICE, BOB, CHARLIE = KNOWN = tuple(
    f"{name}@example.com" for name in ("ada", "admin", "alice", "bob", "charlie")
)
OPERATORS = tuple(f"operator-{number}@example.com" for number in range(12))
GUESTS = tuple(f"guest-{number}@example.com" for number in range(20))
"""Each belongs to one test, which therefore finds no chats or memory of another test."""
LEAVERS = tuple(f"leaver-{number}@example.com" for number in range(8))
"""Users whose rights a test takes away. Each is used once."""

# Hash passwords at the lowest cost to save time.
_SCRIPT = """
import json
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.test import Client
from chatapp.accounts.actions import create_token, create_user
Argon2PasswordHasher.time_cost, Argon2PasswordHasher.memory_cost = 1, 64
for email in {emails!r}:
    user = create_user(email=email, password={password!r}, is_admin=email in {admins!r})
    token = create_token(user=user, name="tests", scopes=["chat", "read", "memory", "admin"])[1]
    browser = Client()
    browser.force_login(user)
    cookies = {{name: cookie.value for name, cookie in browser.cookies.items()}}
    print("person", json.dumps([email, token, cookies]))
"""


@dataclass(frozen=True)
class Credentials:
    """API tokens and the cookies of signed-in browsers, by email address."""

    tokens: dict[str, str]
    cookies: dict[str, dict[str, str]]


def make_people(env: dict[str, str], emails: Collection[str]) -> Credentials:
    """Create users. Return their tokens and cookies."""
    script = _SCRIPT.format(emails=tuple(emails), password=PASSWORD, admins=(ADMIN, *OPERATORS))
    done = run_manage(env, "shell", "-v", "0", "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    people = [
        json.loads(line.removeprefix("person ")) for line in done.stdout.splitlines() if line[:7] == "person "
    ]
    return Credentials(
        {email: token for email, token, _ in people}, {email: cookies for email, _, cookies in people}
    )
