"""Account pages, most of them from allauth, use sentence case and our spelling, as all other pages do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import allauth
import pytest
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from tests.admin.test_panel_in_chinese import Texts

TITLE_CASE = re.compile(r"[A-Z][a-z]+ (?:[a-z]+ )?[A-Z][a-z]+|[Ss]ignup|E-mail")
OPEN = ["login/", "signup/", "password/reset/", "password/reset/done/"]
OF_ONES_OWN = ["password/change/", "logout/", "2fa/", "2fa/totp/activate/", "2fa/webauthn/add/", "sessions/"]


def msgids(catalogue: Path) -> set[str]:
    with catalogue.open("rb") as file:
        return {str(entry.id) for entry in read_po(file) if isinstance(entry.id, str) and entry.id}


def texts_at(client: Client, address: str) -> list[str]:
    shown = client.get(f"/accounts/{address}", follow=True)
    assert shown.status_code == 200, address
    reader = Texts()
    reader.feed(shown.content.decode())
    return reader.found


@pytest.mark.django_db
@pytest.mark.parametrize("address", OPEN)
def test_public_account_pages_use_sentence_case(client: Client, settings: Settings, address: str) -> None:
    settings.SIGNUP, settings.HAS_MAIL = "open", True
    assert [text for text in texts_at(client, address) if TITLE_CASE.search(text)] == []


@pytest.mark.parametrize("address", OF_ONES_OWN)
def test_account_pages_of_users_use_sentence_case(
    browser_client: Callable[[User], Client], alice: User, address: str
) -> None:
    assert [text for text in texts_at(browser_client(alice), address) if TITLE_CASE.search(text)] == []


def test_the_english_catalogue_contains_only_texts_of_allauth() -> None:
    own = msgids(Path(settings.LOCALE_PATHS[0], "en", "LC_MESSAGES", "django.po"))
    assert (
        own - msgids(Path(allauth.__file__).parent / "locale" / "de" / "LC_MESSAGES" / "django.po") == set()
    )
