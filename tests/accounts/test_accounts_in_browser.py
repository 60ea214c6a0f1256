"""Account pages in a browser, on a service with sign-up by invitation."""

from __future__ import annotations

import base64
import hmac
import re
import struct
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.accounts.conftest import RunningIssuer
from tests.fixtures.browser import open_tab
from tests.frontend.chatting import barriers
from tests.servers.oidc_issuer import CLIENT_ID, CLIENT_SECRET
from tests.servers.people import ADMIN, GUESTS
from tests.servers.people import PASSWORD as THEIR_PASSWORD
from tests.servers.service import Service

PASSWORD = "a long enough passphrase"


@pytest.fixture(scope="module")
def service(start_shared: Callable[..., Service], issuer: RunningIssuer) -> Service:
    return start_shared(
        SIGNUP="invite",
        OPERATORS_READ_CHATS="true",
        OIDC_ISSUER=issuer.address,
        OIDC_CLIENT_ID=CLIENT_ID,
        OIDC_CLIENT_SECRET=CLIENT_SECRET,
        OIDC_NAME="Example ID",
    )


@pytest.fixture
def operator(browser: Browser, service: Service) -> Iterator[Page]:
    with open_tab(browser, service.url) as page:
        cookies = service.cookies[ADMIN]
        page.context.add_cookies([{"name": n, "value": v, "url": service.url} for n, v in cookies.items()])
        yield page


def test_an_invitation_link_can_be_used_once(operator: Page, page: Page, browser: Browser) -> None:
    operator.goto("/admin/chatapp/invitation/")
    operator.locator(".object-tools a").click()
    operator.get_by_label("Email address of the invited person").fill("erin@example.com")
    operator.get_by_role("button", name="Invite").click()
    link = operator.locator("#content code").inner_text()

    page.goto(link)
    expect(page.get_by_label("Email")).to_have_value("erin@example.com")
    assert barriers(page) == []
    page.locator("#id_password1").fill(PASSWORD)
    page.locator("#id_password2").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    expect(page.locator("#composer")).to_be_visible()
    told = page.get_by_text("Operators of this service can read chats; every access is recorded.")
    expect(told).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(told).to_be_visible()
    assert barriers(page) == []

    with open_tab(browser, link) as another:
        another.goto(link)
        expect(another.get_by_role("heading", name="Signing up needs an invitation.")).to_be_visible()
        assert barriers(another) == []


def test_signing_in_at_the_issuer_returns_to_the_requested_page(page: Page, issuer: RunningIssuer) -> None:
    issuer.say("frida", email="frida@example.com", email_verified=True, name="Frida")
    page.goto("/memory")
    link = page.get_by_role("link", name="Sign in with Example ID")
    expect(link).to_be_visible()
    assert barriers(page) == []
    link.click()
    page.get_by_label("Name").fill("frida")
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile("/memory$"))
    assert page.evaluate("fetch('/api/v1/me').then(r => r.json())")["email"] == "frida@example.com"


def sign_in(page: Page, email: str) -> None:
    page.goto("/accounts/login/")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(THEIR_PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page: Page) -> None:
    page.goto("/accounts/logout/")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/accounts/login/$"))


def confirm_who_it_is(page: Page) -> None:
    expect(page).to_have_url(re.compile("/accounts/reauthenticate/"))
    page.get_by_label("Password").fill(THEIR_PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def code_of(secret: str, steps_from_now: int = 0) -> str:
    """Return the code that an authenticator app shows (RFC 6238)."""
    step = struct.pack(">Q", int(time.time()) // 30 + steps_from_now)
    digest = hmac.digest(base64.b32decode(secret), step, "sha1")
    place = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[place : place + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


def test_an_authenticator_app_is_required_once_set_up_and_a_recovery_code_works_once(
    page: Page, service: Service
) -> None:
    email = service.newcomer(GUESTS)
    sign_in(page, email)
    expect(page.locator("#composer")).to_be_visible()
    page.goto("/accounts/2fa/")
    assert barriers(page) == []
    page.locator("a[href='/accounts/2fa/totp/activate/']").click()
    confirm_who_it_is(page)
    expect(page.locator("img[src^='data:image/svg']")).to_be_visible()
    secret = page.locator("input[disabled]").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Activate").click()
    expect(page.locator("main")).to_contain_text("Authenticator app activated.")
    page.goto("/accounts/2fa/recovery-codes/")
    recovery = page.locator("textarea").input_value().split()

    for code in (code_of(secret, 1), recovery[0]):
        sign_out(page)
        sign_in(page, email)
        expect(page.get_by_role("heading", name="Two-factor sign-in")).to_be_visible()
        assert barriers(page) == []
        page.goto("/")
        expect(page).to_have_url(re.compile("/accounts/2fa/authenticate/$"))  # not signed in before the code
        page.get_by_label("Code").fill("000000")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("main")).to_contain_text("Incorrect code.")
        page.get_by_label("Code").fill(code)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#composer")).to_be_visible()
    sign_out(page)
    sign_in(page, email)
    page.get_by_label("Code").fill(recovery[0])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("main")).to_contain_text("Incorrect code.")


def test_a_passkey_is_added_and_signs_in_without_a_password(browser: Browser, service: Service) -> None:
    email = service.newcomer(GUESTS)
    with open_tab(
        browser, f"http://localhost:{service.port}"
    ) as page:  # a passkey belongs to a host name, not to an IP address
        keys = page.context.new_cdp_session(page)
        keys.send("WebAuthn.enable")
        options = {"protocol": "ctap2", "transport": "internal", "automaticPresenceSimulation": True}
        able = {"hasResidentKey": True, "hasUserVerification": True, "isUserVerified": True}
        keys.send("WebAuthn.addVirtualAuthenticator", {"options": {**options, **able}})
        sign_in(page, email)
        expect(page.locator("#composer")).to_be_visible()
        page.goto("/accounts/2fa/webauthn/add/")
        confirm_who_it_is(page)
        page.get_by_label("Name").fill("My laptop")
        page.get_by_label("Passwordless").check()
        assert barriers(page) == []
        page.get_by_role("button", name="Add").click()
        expect(page.locator("main")).to_contain_text("Security key added.")
        sign_out(page)
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.locator("#composer")).to_be_visible()
        assert page.evaluate("fetch('/api/v1/me').then(r => r.json())")["email"] == email
