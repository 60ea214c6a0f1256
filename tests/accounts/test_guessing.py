"""Wrong passwords lock out the stranger who enters them, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from allauth.account.models import EmailAddress
from django.core.cache import cache
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_user
from chatapp.accounts.models import User
from chatapp.operations.models import AuditEvent

PASSWORD = "a long enough passphrase"
HERE, ELSEWHERE = "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def _nothing_counted() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def dora(db: None) -> User:
    return create_user(email="dora@example.com", password=PASSWORD)


def sign_in(browser: Client, password: str = PASSWORD, address: str = HERE) -> bool:
    form = {"login": "dora@example.com", "password": password}
    return browser.post("/accounts/login/", form, REMOTE_ADDR=address).status_code == 302


def guess(count: int, address: str) -> None:
    for number in range(count):
        assert not sign_in(Client(), f"guess {number}", address)


def test_a_strangers_guesses_lock_out_the_stranger_only(dora: User) -> None:
    guess(12, ELSEWHERE)
    assert not sign_in(Client(), PASSWORD, ELSEWHERE), "even with the right one"
    assert sign_in(Client(), PASSWORD, HERE)


def test_guesses_from_everywhere_do_not_lock_out_a_known_browser(dora: User) -> None:
    known = Client()
    assert sign_in(known)
    known.post("/accounts/logout/")
    for number in range(25):
        guess(4, f"203.0.113.{number}")
    assert not sign_in(Client()), "unknown browsers wait"
    assert sign_in(known)


def test_a_known_browser_is_locked_out_after_ten_guesses(dora: User) -> None:
    known = Client()
    sign_in(known)
    known.post("/accounts/logout/")
    answers = [sign_in(known, "wrong") for _ in range(10)]
    assert not any(answers)
    assert not sign_in(known)


def claim_address(browser: Client) -> None:
    """Add dora's address to the account of the signed-in user."""
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD})
    browser.post("/accounts/email/", {"email": "dora@example.com", "action_add": ""})


def test_the_address_of_an_account_cannot_be_added_to_another_one(dora: User) -> None:
    eve = create_user(email="eve@example.com", password=PASSWORD)
    browser = Client()
    browser.post("/accounts/login/", {"login": "eve@example.com", "password": PASSWORD})
    claim_address(browser)
    assert not EmailAddress.objects.filter(user=eve, email="dora@example.com").exists()


def test_entering_an_address_without_confirming_it_makes_no_browser_known(dora: User) -> None:
    eve = create_user(email="eve@example.com", password=PASSWORD)
    # Eve entered the address before dora had an account.
    EmailAddress.objects.create(user=eve, email="dora@example.com")
    browser = Client()
    browser.post("/accounts/login/", {"login": "eve@example.com", "password": PASSWORD})
    browser.post("/accounts/logout/")
    for number in range(5):
        assert not sign_in(browser, f"guess {number}", ELSEWHERE)
    assert not sign_in(browser, PASSWORD, ELSEWHERE), "a new browser of eve's would have ten more"


def test_many_other_cache_entries_do_not_reset_the_count_of_guesses(dora: User) -> None:
    guess(5, ELSEWHERE)
    for number in range(1_000):
        cache.set(f"of-another-{number}", [0.0])
    assert not sign_in(Client(), PASSWORD, ELSEWHERE)


def test_a_browser_with_a_forged_cookie_is_a_stranger(dora: User) -> None:
    guess(5, HERE)
    forged = Client()
    forged.cookies["device"] = f'["x", ["{dora.pk}"]]:forged:signature'
    assert not sign_in(forged)


@pytest.mark.parametrize("password", [" " * 12, "\t \n" * 6, "x" * 1_001, " secret " + " " * 10])
def test_blanks_and_long_passwords_are_refused(
    client: Client, settings: Settings, db: None, password: str
) -> None:
    settings.SIGNUP = "open"
    client.post("/accounts/signup/", {"email": "e@example.com", "password1": password, "password2": password})
    assert not User.objects.exists()


def test_a_password_of_a_megabyte_is_not_hashed(dora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was hashed")

    for method in ("encode", "verify"):
        monkeypatch.setattr(f"django.contrib.auth.hashers.MD5PasswordHasher.{method}", refuse)
    assert not sign_in(Client(), "x" * 2**20)
    assert not dora.check_password("x" * 2**20)


def test_sign_ins_sign_outs_and_failures_are_audited(dora: User) -> None:
    browser = Client()
    sign_in(browser, "wrong")
    sign_in(browser)
    browser.post("/accounts/logout/")
    sign_in(Client(), address=ELSEWHERE)
    kinds = list(AuditEvent.objects.order_by("id").values_list("kind", "user_id"))
    assert kinds == [
        ("account_created", dora.pk),
        ("sign_in_failed", dora.pk),
        ("signed_in", dora.pk),
        ("signed_out", dora.pk),
        ("signed_in", dora.pk),
    ]
