"""People a service knows before it starts, with their API tokens: made in one process for however many there are."""

from __future__ import annotations

from collections.abc import Collection

from tests.servers.service import run_manage

PASSWORD = "correct horse battery"
ADA, ADMIN, ALICE, BOB, CHARLIE = KNOWN = tuple(
    f"{name}@example.com" for name in ("ada", "admin", "alice", "bob", "charlie")
)
_SCRIPT = """
from chatapp.accounts.actions import create_token, create_user
for email in {emails!r}:
    user = create_user(email=email, password={password!r}, is_admin=email == {admin!r})
    print("token", email, create_token(user=user, name="tests", scopes=["chat", "read", "memory", "admin"])[1])
"""


def make_people(env: dict[str, str], emails: Collection[str]) -> dict[str, str]:
    """Their API tokens by e-mail address."""
    script = _SCRIPT.format(emails=tuple(emails), password=PASSWORD, admin=ADMIN)
    done = run_manage(env, "shell", "-v", "0", "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("token ")]
    return {email: token for _, email, token in lines}
