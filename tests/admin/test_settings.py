"""The settings that operators change without a restart: sources, validation, permissions and the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.mail.backends.smtp import EmailBackend
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from chatapp.context.tools.registry import deployment_rights
from chatapp.operations.configuration.changeable_settings import (
    change_setting,
    current,
    has_mail,
    mail_connection,
    mail_sender,
)
from chatapp.operations.configuration.environment import load_dotenv, read_as, source_of
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.models import AuditEvent, StoredSetting
from chatapp.settings import CHANGEABLE
from tests.admin.test_every_page import Fields

PAGE = "/admin/settings/"

pytestmark = [pytest.mark.django_db]


def save(client: Client, **changes: str) -> Any:
    """Send the form with these changes, like a browser."""
    return client.post(PAGE, {**shown_by(client), **changes}, follow=True)


def shown_by(client: Client) -> dict[str, str]:
    """Return the form data that the page would send without changes."""
    reader = Fields()
    page = client.get(PAGE)
    reader.feed(page.content.decode())
    form = page.context["form"]
    names = {name: name.removeprefix("initial-") for name in reader.found}
    return {sent: form[name].value() for sent, name in names.items() if name in CHANGEABLE}


def text_of(page: Any) -> str:
    return " ".join(page.content.decode().split())


def test_a_change_takes_effect_at_once_and_an_empty_field_restores_the_default(
    admin_client: Client, admin_user: User
) -> None:
    assert current("RETENTION_DAYS") == 30
    page = save(admin_client, RETENTION_DAYS="90", SIGNUP="invite")
    assert "Changed: RETENTION_DAYS, SIGNUP" in text_of(page)
    assert (current("RETENTION_DAYS"), current("SIGNUP"), current("TRASH_DAYS")) == (90, "invite", 30)
    assert "Changed here on" in text_of(page)
    save(admin_client, RETENTION_DAYS="")
    assert current("RETENTION_DAYS") == 30
    events = list(AuditEvent.objects.filter(kind=AuditEvent.Kind.CHANGED_IN_ADMIN).order_by("at", "id"))
    changes = [event.detail for event in events]
    assert [(change["done"], change["name"]) for change in changes] == [
        ("added", "RETENTION_DAYS"),
        ("added", "SIGNUP"),
        ("deleted", "RETENTION_DAYS"),
    ]
    assert (changes[0]["to"], events[0].actor_id) == ("90", admin_user.pk)


def test_a_stale_form_does_not_revert_other_changes(admin_client: Client) -> None:
    shown = shown_by(admin_client)
    change_setting(name="RETENTION_DAYS", raw="365", actor_id=None)
    page = admin_client.post(PAGE, {**shown, "SIGNUP": "invite"}, follow=True)
    assert page.context["form"]["RETENTION_DAYS"].value() == "365"
    assert (current("RETENTION_DAYS"), current("SIGNUP")) == (365, "invite")


@pytest.mark.parametrize(
    ("name", "raw", "problem"),
    [
        ("RETENTION_DAYS", "-1", "must be a whole number from 0"),
        ("RETENTION_DAYS", "soon", "must be a whole number from 0"),
        ("HTTP_FETCH_HOSTS", "https://docs.python.org/", "must be a list of hosts"),
        ("DEFAULT_TOOLS", "clock; rm", "must be a list of names of tools"),
        ("EMAIL_URL", "smtp://mail.example.com", "must be an address such as smtps://"),
    ],
)
def test_values_that_are_invalid_at_start_up_are_rejected_at_their_fields(
    admin_client: Client, name: str, raw: str, problem: str
) -> None:
    page = save(admin_client, **{name: raw})
    assert page.status_code == 400
    assert problem in page.context["form"].errors[name][0]
    assert not StoredSetting.objects.exists()
    with pytest.raises(InvalidInput, match=problem.partition(" ")[0]):
        change_setting(name=name, raw=raw, actor_id=None)


def test_the_environment_overrides_a_stored_value_and_cannot_be_changed(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_setting(name="RETENTION_DAYS", raw="90", actor_id=None)
    monkeypatch.setenv("RETENTION_DAYS", "7")
    StoredSetting.objects.update(changed_at="2026-01-01T00:00:00Z")  # Any write makes the cache stale.
    assert current("RETENTION_DAYS") == 30, "what the settings read at their start"
    page = text_of(admin_client.get(PAGE))
    assert '<p class="value"><code>7</code></p>' in page
    assert "Fixed by the environment." in page
    with pytest.raises(Conflict):
        change_setting(name="RETENTION_DAYS", raw="60", actor_id=None)
    save(admin_client, RETENTION_DAYS="60")
    assert StoredSetting.objects.count() == 1


def test_the_env_file_is_named_as_the_source(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "env").write_text("TRASH_DAYS=9\n")
    monkeypatch.setenv("TRASH_DAYS", "")
    monkeypatch.delenv("TRASH_DAYS")
    monkeypatch.setenv("ENV_FILE", str(tmp_path / "env"))
    load_dotenv()
    assert source_of("TRASH_DAYS") == "the .env file"
    assert source_of("SIGNUP") == ""


def test_mail_uses_the_entered_address_whose_password_is_never_shown(admin_client: Client) -> None:
    assert not has_mail()
    url = "smtps://us:pass-word@mail.example.com?from=chat@example.com"
    page = save(admin_client, EMAIL_URL=url)
    assert "mail.example.com, from chat@example.com: changed here on" in text_of(page)
    backend = mail_connection()
    assert isinstance(backend, EmailBackend)
    assert (backend.host, backend.port, backend.password) == ("mail.example.com", 465, "pass-word")
    assert (backend.use_ssl, mail_sender(), has_mail()) == (True, "chat@example.com", True)
    assert "pass-word" not in page.content.decode() + str(list(AuditEvent.objects.values()))
    assert "pass-word" not in str(list(StoredSetting.objects.values()))
    save(admin_client, TRASH_DAYS="5")
    assert has_mail(), "an empty field keeps what is set"
    save(admin_client, EMAIL_URL="none")
    assert not has_mail()


def test_naming_a_host_gives_tools_access_to_the_web(admin_client: Client) -> None:
    assert "web" not in deployment_rights()
    save(admin_client, HTTP_FETCH_HOSTS="docs.python.org")
    assert "web" in deployment_rights()


def test_all_other_settings_are_listed_without_secrets(admin_client: Client, settings: Settings) -> None:
    page = text_of(admin_client.get(PAGE))
    assert "MAX_UPLOAD_BYTES" in page
    assert "(set, not shown)" in page
    assert settings.SECRET_KEY not in page


def test_only_admins_can_open_the_settings(
    browser_client: Callable[[User], Client], bob: User, charlie: User
) -> None:
    assert browser_client(charlie).get(PAGE).status_code == 404
    bob.is_staff = True
    bob.save()
    assert browser_client(bob).get(PAGE).status_code == 403


def test_values_are_parsed_as_at_start_up() -> None:
    assert read_as("HTTP_FETCH_HOSTS", "a.example, *.b.example", CHANGEABLE["HTTP_FETCH_HOSTS"]) == [
        "a.example",
        "*.b.example",
    ]
    with pytest.raises(ValueError, match="TRASH_DAYS must be a whole number"):
        read_as("TRASH_DAYS", "x", CHANGEABLE["TRASH_DAYS"])
