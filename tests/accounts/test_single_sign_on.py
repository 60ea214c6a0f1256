"""Signing in at an OpenID Connect issuer, a real one in its own process."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_user
from chatapp.accounts.archive import account_files
from chatapp.accounts.invitations.services import invite
from chatapp.accounts.models import User
from chatapp.operations.models import AuditEvent
from tests.accounts.conftest import RunningIssuer
from tests.servers.oidc_issuer import CLIENT_ID, CLIENT_SECRET
from tests.servers.waiting import PATIENCE_S

PASSWORD = "a long enough passphrase"
BEGIN = "/accounts/oidc/sso/login/"


@pytest.fixture(autouse=True)
def _configured(settings: Settings, issuer: RunningIssuer) -> None:
    configure(settings, issuer.address)


def configure(settings: Settings, address: str) -> None:
    settings.OIDC_ISSUER, settings.OIDC_NAME = address, "Example ID"
    known = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]
    app = {"provider_id": "sso", "name": "Example ID", "client_id": CLIENT_ID, "secret": CLIENT_SECRET}
    apps = [{**app, "settings": {"server_url": address}}]
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {**known, "APPS": apps}}


def sign_in(person: str, client: Client | None = None, begin: str = BEGIN) -> tuple[Client, Any]:
    """Return (browser, response to it when it comes back from the issuer)."""
    client = client or Client()
    asked = client.get(begin)
    assert asked.status_code == 302, asked.content
    back = httpx2.post(asked["Location"], data={"person": person}, timeout=PATIENCE_S)
    return client, client.get(urlsplit(back.headers["Location"])._replace(scheme="", netloc="").geturl())


def asked_for(begin: str = BEGIN, client: Client | None = None) -> dict[str, str]:
    """Return the parameters with which the browser is sent to the issuer."""
    location = (client or Client()).get(begin)["Location"]
    return {name: value for name, [value] in parse_qs(urlsplit(location).query).items()}


def is_signed_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_a_new_person_gets_an_account_without_a_password_and_returns_to_it(
    db: None, issuer: RunningIssuer
) -> None:
    issuer.say("frida", email="Frida@Example.com", email_verified=True, name="Frida K")
    client, _ = sign_in("frida")
    assert is_signed_in(client)
    frida = User.objects.get()
    assert (frida.email, frida.name, frida.has_usable_password()) == ("frida@example.com", "Frida K", False)
    issuer.say("frida", email="other@example.com", email_verified=True)
    assert is_signed_in(sign_in("frida")[0])
    assert User.objects.get() == frida  # found by the subject, though the address changed
    assert set(AuditEvent.objects.values_list("kind", flat=True)) >= {"account_created", "signed_in"}


def test_an_account_made_by_an_operator_is_linked_and_keeps_its_password(
    db: None, issuer: RunningIssuer
) -> None:
    dora = create_user(email="dora@example.com", password=PASSWORD)
    issuer.say("d", email="Dora@example.com", email_verified=True)
    assert is_signed_in(sign_in("d")[0])
    assert SocialAccount.objects.get().user == dora
    dora.refresh_from_db()
    assert dora.check_password(PASSWORD)
    assert AuditEvent.objects.filter(kind="single_sign_on_changed", user_id=dora.pk).exists()


@pytest.mark.parametrize(
    "name",
    [
        # PostgreSQL maps these to upper-case ASCII letters; SQLite leaves them as they are.
        pytest.param("\N{LATIN SMALL LETTER DOTLESS I}sk", marks=pytest.mark.postgres),
        pytest.param("i\N{LATIN SMALL LETTER LONG S}k", marks=pytest.mark.postgres),
        "is\N{KELVIN SIGN}",
    ],
)
def test_an_address_that_only_unicode_case_folding_makes_equal_is_not_linked(
    db: None, issuer: RunningIssuer, name: str
) -> None:
    isk = create_user(email="isk@example.com", password=PASSWORD)
    issuer.say("mallory", email=f"{name}@example.com", email_verified=True)
    sign_in("mallory")
    assert not SocialAccount.objects.filter(user=isk).exists()


@pytest.mark.parametrize("made_by", ["command", "panel", "change of the address"])
def test_an_account_made_by_an_operator_is_linked_after_allauth_stored_its_address(
    db: None, issuer: RunningIssuer, admin_client: Client, made_by: str
) -> None:
    """allauth creates the row of an address when a page shows it or a password reset is requested."""
    email, users = "dora@example.com", "/admin/chatapp/user"
    if made_by == "panel":
        new = {"email": email, "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
        assert admin_client.post(f"{users}/add/", new).status_code == 302
    else:
        dora = create_user(email=email if made_by == "command" else "former@example.com", password=PASSWORD)
        fields = {"email": email, "time_zone": "UTC", "is_active": "on"}
        assert admin_client.post(f"{users}/{dora.pk}/change/", fields).status_code == 302
    browser = Client()
    browser.post("/accounts/login/", {"login": email, "password": PASSWORD})
    assert browser.get("/accounts/email/").status_code == 200
    issuer.say("d", email=email, email_verified=True)
    client, answer = sign_in("d")
    assert is_signed_in(client), answer.content
    assert SocialAccount.objects.get().user.email == email


def test_the_migration_confirms_only_addresses_that_operators_entered(alice: User, bob: User) -> None:
    EmailAddress.objects.create(user=bob, email=bob.email, primary=True)  # as after signing up
    import_module("chatapp.migrations.0040_addresses_of_operators").prove_addresses(apps, None)
    rows = EmailAddress.objects.values_list("email", "verified", "primary")
    assert set(rows) == {(alice.email, True, True), (bob.email, False, True)}


def test_an_account_with_an_unconfirmed_address_is_not_linked(db: None, issuer: RunningIssuer) -> None:
    """Somebody else may have signed up with the address, and knows the password."""
    squatted = create_user(email="dora@example.com", password=PASSWORD)
    EmailAddress.objects.filter(user=squatted).update(verified=False)
    issuer.say("dora", email="dora@example.com", email_verified=True)
    client, answer = sign_in("dora")
    assert answer.status_code == 403
    assert "has an account with a password" in answer.content.decode()
    assert not is_signed_in(client)
    assert not SocialAccount.objects.exists()


def test_an_unconfirmed_address_of_another_user_does_not_lock_out_its_owner(
    db: None, issuer: RunningIssuer
) -> None:
    eve = create_user(email="eve@example.com", password=PASSWORD)
    EmailAddress.objects.create(user=eve, email="dora@example.com")
    issuer.say("dora", email="dora@example.com", email_verified=True)
    assert is_signed_in(sign_in("dora")[0])
    assert User.objects.filter(email="dora@example.com").exists()
    assert not EmailAddress.objects.filter(user=eve, email="dora@example.com").exists()


def test_an_account_is_linked_by_another_confirmed_address(db: None, issuer: RunningIssuer) -> None:
    dora = create_user(email="dora@example.com", password=PASSWORD)
    EmailAddress.objects.create(user=dora, email="dora@home.example", verified=True)
    issuer.say("d", email="Dora@home.example", email_verified=True)
    client, answer = sign_in("d")
    assert is_signed_in(client), answer.content
    assert SocialAccount.objects.get().user == dora
    dora.refresh_from_db()
    assert (dora.email, dora.check_password(PASSWORD)) == ("dora@example.com", True)


def test_an_address_that_two_accounts_have_links_neither(db: None, issuer: RunningIssuer) -> None:
    dora = create_user(email="dora@example.com", password=PASSWORD)
    EmailAddress.objects.create(user=dora, email="erin@example.com", verified=True)
    User.objects.create_user("erin@example.com", PASSWORD)
    issuer.say("erin", email="erin@example.com", email_verified=True)
    assert sign_in("erin")[1].status_code == 403
    assert not SocialAccount.objects.exists()


def test_no_form_lets_a_new_person_enter_an_unconfirmed_address(db: None, issuer: RunningIssuer) -> None:
    assert Client().get("/accounts/3rdparty/signup/").status_code == 404
    assert Client().post("/accounts/3rdparty/signup/", {"email": "any@example.com"}).status_code == 404


def test_a_signed_in_user_can_link_the_account(db: None, issuer: RunningIssuer) -> None:
    squatted = create_user(email="dora@example.com", password=PASSWORD)
    EmailAddress.objects.filter(user=squatted).update(verified=False)
    issuer.say("dora", email="dora@example.com", email_verified=True)
    client = Client()
    client.post("/accounts/login/", {"login": squatted.email, "password": PASSWORD})
    assert "Example ID" in client.get("/accounts/3rdparty/").content.decode()
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    sign_in("dora", client, f"{BEGIN}?process=connect")
    assert SocialAccount.objects.get().user == squatted


@pytest.mark.parametrize("said", [False, "false", None, "yes", 1])
def test_an_address_that_the_issuer_has_not_verified_is_refused(
    db: None, issuer: RunningIssuer, said: Any, settings: Settings
) -> None:
    create_user(email="dora@example.com", password=PASSWORD)
    issuer.say("mallory", email="dora@example.com", email_verified=said)
    client, answer = sign_in("mallory")
    assert answer.status_code == 403
    assert "is not confirmed" in answer.content.decode()
    assert not is_signed_in(client)
    settings.OIDC_TRUSTS_ADDRESSES = True
    assert is_signed_in(sign_in("mallory")[0])


def test_accounts_are_created_only_if_the_setting_allows_it(
    db: None, issuer: RunningIssuer, settings: Settings
) -> None:
    settings.OIDC_MAKES_ACCOUNTS = False
    issuer.say("gina", email="gina@example.com", email_verified=True)
    client, answer = sign_in("gina")
    assert "Nobody can sign up here." in answer.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.exists()


def test_an_invitation_is_not_accepted_while_sign_up_is_closed(
    db: None, issuer: RunningIssuer, settings: Settings
) -> None:
    settings.OIDC_MAKES_ACCOUNTS = False
    settings.SIGNUP = "invite"
    admin = create_user(email="admin@example.com", password=PASSWORD, is_admin=True)
    link = invite(email="gina@example.com", invited_by=admin, own_address="").link
    issuer.say("gina", email="gina@example.com", email_verified=True)
    client = Client()
    client.get(link)
    settings.SIGNUP = "closed"
    assert not is_signed_in(sign_in("gina", client)[0])
    settings.SIGNUP = "invite"
    assert is_signed_in(sign_in("gina", client)[0])


def test_groups_follow_the_configured_claim(db: None, issuer: RunningIssuer, settings: Settings) -> None:
    research, sales = (Group.objects.create(name=name) for name in ("Research", "Sales"))
    claims = {"email": "hedy@example.com", "email_verified": True}
    issuer.say("hedy", **claims, roles=["Research", "unknown here"])
    sign_in("hedy")
    hedy = User.objects.get()
    assert not hedy.groups.exists()
    settings.OIDC_GROUPS_CLAIM = "roles"
    sign_in("hedy")
    assert set(hedy.groups.all()) == {research}
    issuer.say("hedy", **claims, roles="Sales")
    sign_in("hedy")
    assert set(hedy.groups.all()) == {sales}
    issuer.say("hedy", **claims)
    sign_in("hedy")
    assert set(hedy.groups.all()) == {sales}
    issuer.say("ida", email="ida@example.com", email_verified=True, roles=["Sales"])
    sign_in("ida")
    assert set(User.objects.get(email="ida@example.com").groups.all()) == {sales}
    told = AuditEvent.objects.filter(kind="groups_followed").order_by("id")
    assert [event.detail["groups"] for event in told] == [["Research"], ["Sales"], ["Sales"]]


def test_a_deactivated_account_cannot_sign_in(db: None, issuer: RunningIssuer) -> None:
    issuer.say("jan", email="jan@example.com", email_verified=True)
    sign_in("jan")
    User.objects.update(is_active=False)
    assert not is_signed_in(sign_in("jan")[0])


def test_a_response_for_another_browser_signs_nobody_in(db: None, issuer: RunningIssuer) -> None:
    issuer.say("kim", email="kim@example.com", email_verified=True)
    back = httpx2.post(Client().get(BEGIN)["Location"], data={"person": "kim"}, timeout=PATIENCE_S).headers[
        "Location"
    ]
    victim = Client()
    victim.get(urlsplit(back)._replace(scheme="", netloc="").geturl())
    assert not is_signed_in(victim)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["a"]},
        {"sub": "x" * 300},
        {"sub": "nul\0"},
        {"sub": "somebody-else"},
        {"email": 5},
        {"email": ["mia@example.com"]},
        {"email": {}},
    ],
)
def test_claims_without_a_valid_subject_or_address_are_refused(
    db: None, issuer: RunningIssuer, claims: dict[str, Any]
) -> None:
    """The ID token identifies the user, and the userinfo response must name the same subject."""
    issuer.say("mia", **{"email": "mia@example.com", "email_verified": True, **claims})
    client, answer = sign_in("mia")
    assert answer.status_code in (403, 502), answer.content
    assert "Example ID did not sa" in answer.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"name": "Mia\0 K"},
        {"name": {"a": 1}},
        {"name": "x" * 9_000},
        {"roles": [None, {"a": "\0"}]},
        {"roles": 5},
    ],
)
def test_other_invalid_claims_do_not_prevent_signing_in(
    db: None, issuer: RunningIssuer, settings: Settings, claims: dict[str, Any]
) -> None:
    settings.OIDC_GROUPS_CLAIM = "roles"
    issuer.say("mia", email="mia@example.com", email_verified=True, **claims)
    assert is_signed_in(sign_in("mia")[0])
    assert is_signed_in(sign_in("mia")[0]), "each sign-in stores the claims"
    assert "\0" not in User.objects.get().name


def test_an_internal_error_is_not_reported_as_one_of_the_issuer(
    db: None, issuer: RunningIssuer, settings: Settings
) -> None:
    settings.OIDC_GROUPS_CLAIM = ["roles"]  # a list cannot be the name of a claim
    issuer.say("mia", email="mia@example.com", email_verified=True)
    with pytest.raises(TypeError):
        sign_in("mia")
    assert not User.objects.exists()


@pytest.mark.parametrize("email", ["not an address", "mia@", "x" * 300 + "@example.com", "mia@example.com\0"])
def test_an_invalid_address_creates_no_account(db: None, issuer: RunningIssuer, email: str) -> None:
    issuer.say("mia", email=email, email_verified=True)
    client, answer = sign_in("mia")
    assert answer.status_code < 500 or answer.status_code == 502
    assert not is_signed_in(client)
    assert not User.objects.exists()


def test_an_unreachable_issuer_is_reported(db: None, settings: Settings) -> None:
    configure(settings, "http://127.0.0.1:1")
    answer = Client().get(BEGIN)
    assert answer.status_code == 503
    assert "Example ID does not answer." in answer.content.decode()


def test_single_sign_on_is_not_offered_without_an_issuer(db: None, settings: Settings) -> None:
    settings.OIDC_ISSUER = ""
    assert BEGIN not in Client().get("/accounts/login/").content.decode()
    assert Client().get(BEGIN).status_code == 404
    assert Client().get("/accounts/oidc/other/login/").status_code == 404


def test_a_user_without_a_password_can_export_and_delete_the_account(db: None, issuer: RunningIssuer) -> None:
    issuer.say("lea", email="lea@example.com", email_verified=True)
    client, _ = sign_in("lea")
    account = json.loads(str(dict(account_files(User.objects.get()))["account.json"]))
    assert account["single_sign_on"][0]["subject"] == "lea"
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 600
    session.save()
    refused = client.delete("/api/v1/me")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "sign_in_needed")
    sign_in("lea", client)
    assert client.delete("/api/v1/me").status_code == 204
    assert not User.objects.exists()
    assert not SocialAccount.objects.exists()


def test_each_sign_in_has_a_new_nonce_state_and_challenge_that_a_link_cannot_set(db: None) -> None:
    first, second = asked_for(), asked_for()
    for name in ("nonce", "state", "code_challenge"):
        assert len(first[name]) >= 16
        assert first[name] != second[name]
    planted = {"nonce": "planted", "state": "planted", "redirect_uri": "https://evil.example"}
    link = f"{BEGIN}?{urlencode({'auth_params': urlencode(planted), 'scope': 'offline_access'})}"
    asked = asked_for(link)
    assert set(asked) == set(first)
    assert "planted" not in asked.values()
    assert (asked["redirect_uri"], asked["scope"]) == (first["redirect_uri"], first["scope"])
    assert asked["code_challenge_method"] == "S256"


@pytest.mark.parametrize("nonce", [None, "", "of another sign-in", 7, ["a"]])
def test_a_token_without_the_nonce_of_this_sign_in_is_refused(
    db: None, issuer: RunningIssuer, nonce: Any
) -> None:
    issuer.say("noa", email="noa@example.com", email_verified=True, id_token={"nonce": nonce})
    client, answer = sign_in("noa")
    assert answer.status_code == 502
    assert "Example ID did not say" in answer.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.exists()


def test_a_stolen_code_does_not_sign_in_the_attacker(db: None, issuer: RunningIssuer) -> None:
    """The attacker's browser sends the code of the victim with its own state."""
    issuer.say("olga", email="olga@example.com", email_verified=True)
    assert is_signed_in(sign_in("olga")[0])
    victim, attacker = Client(), Client()
    stolen = httpx2.post(victim.get(BEGIN)["Location"], data={"person": "olga"}, timeout=PATIENCE_S).headers[
        "Location"
    ]
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    own = asked_for(client=attacker)["state"]
    attacker.get(f"{BEGIN}callback/?{urlencode({'code': code, 'state': own})}")
    assert not is_signed_in(attacker)


def test_a_response_of_the_issuer_is_accepted_once(db: None, issuer: RunningIssuer) -> None:
    issuer.say("pia", email="pia@example.com", email_verified=True)
    client = Client()
    back = httpx2.post(client.get(BEGIN)["Location"], data={"person": "pia"}, timeout=PATIENCE_S).headers[
        "Location"
    ]
    path = urlsplit(back)._replace(scheme="", netloc="").geturl()
    client.get(path)
    assert is_signed_in(client)
    client.logout()
    client.get(path)
    assert not is_signed_in(client)
