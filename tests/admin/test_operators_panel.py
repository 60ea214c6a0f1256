"""Only operators can open the panel. They see users, times and amounts, but never the text of chats."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_token
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, GroupRetention
from chatapp.operations import clock
from chatapp.providers.models import Usage

PAGES = ["user", "apitoken", "modelconfig", "conversation", "run", "compaction", "usage"]


@pytest.mark.parametrize("listed", PAGES)
def test_every_list_and_the_index_render(admin_client: Client, listed: str) -> None:
    assert admin_client.get("/admin/").status_code == 200
    assert admin_client.get(f"/admin/chatapp/{listed}/").status_code == 200


def test_an_operator_sets_the_clean_up_period_of_a_group(admin_client: Client) -> None:
    fields = {
        "name": "Researchers",
        "access-TOTAL_FORMS": 0,
        "access-INITIAL_FORMS": 0,
        "retention-TOTAL_FORMS": 1,
        "retention-INITIAL_FORMS": 0,
        "retention-0-days": 365,
    }
    assert admin_client.post("/admin/auth/group/add/", fields).status_code == 302
    assert GroupRetention.objects.get(group__name="Researchers").days == 365
    assert "365 days" in admin_client.get("/admin/auth/group/").content.decode()


@pytest.mark.parametrize("path", ["", "login/", "chatapp/user/", "chatapp/modelconfig/connect/", "nonsense/"])
def test_users_who_are_not_operators_get_404(
    browser_client: Callable[[User], Client], charlie: User, path: str
) -> None:
    assert browser_client(charlie).get(f"/admin/{path}").status_code == 404


def test_anonymous_visitors_are_redirected_to_the_sign_in_page(db: None, client: Client) -> None:
    response = client.get("/admin/chatapp/user/", follow=True)
    assert response.redirect_chain[-1][0] == "/accounts/login/?next=%2Fadmin%2Fchatapp%2Fuser%2F"


def test_signing_out_of_the_panel_ends_the_session(admin_client: Client) -> None:
    assert admin_client.post("/admin/logout/").status_code == 302
    assert admin_client.get("/").status_code == 302


@pytest.fixture
def conversation(alice: User) -> Conversation:
    conversation = create_conversation(user=alice, now=clock.now())
    Conversation.objects.filter(pk=conversation.pk).update(title="A secret matter")
    assert conversation.branch
    Compaction.objects.create(
        conversation=conversation,
        branch=conversation.branch,
        first_position=0,
        last_position=3,
        message_count=4,
        kept_count=0,
        status="done",
        strategy="checkpoint",
        summary="A secret matter",
        keep_hint="A secret matter",
        created_at=clock.now(),
    )
    return conversation


def test_operators_see_conversations_without_their_texts(
    admin_client: Client, conversation: Conversation
) -> None:
    compaction = Compaction.objects.get()
    for page in (
        "conversation/",
        f"conversation/{conversation.pk}/change/",
        "compaction/",
        f"compaction/{compaction.pk}/change/",
    ):
        response = admin_client.get(f"/admin/chatapp/{page}")
        assert response.status_code == 200
        assert str(conversation.pk) in response.content.decode()
        assert "secret" not in response.content.decode()


@pytest.mark.parametrize(
    "asked",
    [
        "conversation/?title__startswith=",
        "compaction/?summary__contains=",
        "compaction/?keep_hint__contains=",
        "user/?instructions__contains=",
    ],
)
def test_filters_do_not_reveal_texts_that_the_lists_hide(
    admin_client: Client, conversation: Conversation, asked: str
) -> None:
    """A filter by prefix would reveal a text letter by letter."""
    User.objects.update(instructions="A secret matter")
    for guess in ("A", "B"):
        assert admin_client.get(f"/admin/chatapp/{asked}{guess}").status_code == 400
    shown = (
        "conversation/?model__isnull=True",
        "compaction/?created_at__year=2026",
        "user/?groups__id__exact=1",
    )
    for page in shown:
        assert admin_client.get(f"/admin/chatapp/{page}").status_code == 200


@pytest.mark.parametrize("listed", ["conversation", "run", "compaction", "usage", "apitoken"])
def test_records_of_past_activity_cannot_be_added(admin_client: Client, listed: str) -> None:
    assert admin_client.get(f"/admin/chatapp/{listed}/add/").status_code == 403


@pytest.mark.mechanism("ours.ledger", "ours.saved")
def test_usage_is_summed_over_the_filtered_rows(admin_client: Client, alice: User) -> None:
    for purpose, tokens in (("chat", 1000), ("chat", 500), ("compaction", 70)):
        Usage.objects.create(
            user=alice,
            model_name="m",
            purpose=purpose,
            input_tokens=tokens,
            output_tokens=1,
            exact=True,
            kept_out_tokens=tokens * 2,
        )
    page = admin_client.get("/admin/chatapp/usage/?purpose=chat").content.decode()
    assert "2 calls · 1,500 tokens in" in page
    assert "3,000 tokens kept out of requests by compaction" in page


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_numbers_have_thousands_separators(admin_client: Client, alice: User, language: str) -> None:
    Usage.objects.create(
        user=alice, model_name="m", purpose="chat", input_tokens=2494, output_tokens=1, exact=True
    )
    for address in ("usage/", "usage/report/?from=2020-01-01&to=2029-12-31&group_by=purpose"):
        shown = admin_client.get(f"/admin/chatapp/{address}", HTTP_ACCEPT_LANGUAGE=language).content.decode()
        assert "2,494" in shown
        assert "2494" not in shown


def test_usage_can_be_summed_up_to_the_last_day_of_the_calendar(admin_client: Client) -> None:
    page = admin_client.get("/admin/chatapp/usage/report/?group_by=day&to=9999-12-31")
    assert page.status_code == 200


def test_a_token_is_shown_without_its_secret_and_can_be_deleted(admin_client: Client, alice: User) -> None:
    token, secret = create_token(user=alice, name="ci", scopes=["read"])
    for page in ("", f"{token.pk}/change/"):
        content = admin_client.get(f"/admin/chatapp/apitoken/{page}").content.decode()
        assert token.prefix in content
        assert secret not in content
        assert token.token_hash not in content
    admin_client.post(f"/admin/chatapp/apitoken/{token.pk}/delete/", {"post": "yes"})
    assert not alice.api_tokens.exists()


@pytest.mark.parametrize("path", ["mfa/authenticator/", "usersessions/usersession/"])
def test_second_factors_and_session_keys_have_no_page(admin_client: Client, path: str) -> None:
    assert admin_client.get(f"/admin/{path}").status_code == 404


# --- users ----------------------------------------------------------------------------------------------

PASSWORDS = {"password1": "a long enough passphrase", "password2": "a long enough passphrase"}


def test_an_admin_creates_a_user_who_can_sign_in(admin_client: Client, client: Client) -> None:
    admin_client.post("/admin/chatapp/user/add/", {"email": "Erin@Example.com", "name": "Erin", **PASSWORDS})
    form = {"login": "erin@example.com", "password": PASSWORDS["password1"]}
    assert client.post("/accounts/login/", form).status_code == 302


def test_an_email_address_can_be_used_once(admin_client: Client, alice: User) -> None:
    response = admin_client.post("/admin/chatapp/user/add/", {"email": "ALICE@example.com", **PASSWORDS})
    assert "There is an account with this email address already." in response.content.decode()


def user_form(user: User, **changes: object) -> dict[str, object]:
    flags = {name: "on" for name in ("is_active", "is_staff", "is_superuser") if getattr(user, name)}
    form = {"email": user.email, "name": user.name, "time_zone": user.time_zone, **flags, **changes}
    return {name: value for name, value in form.items() if value is not None}


@pytest.mark.parametrize("right", ["is_superuser", "is_active", "is_staff"])
def test_the_only_admin_cannot_lock_everybody_out(admin_client: Client, admin_user: User, right: str) -> None:
    address = f"/admin/chatapp/user/{admin_user.pk}/change/"
    response = admin_client.post(address, user_form(admin_user, **{right: None}))
    assert "This is the only admin" in response.content.decode()
    admin_user.refresh_from_db()
    assert getattr(admin_user, right)


def test_an_admin_without_access_to_the_panel_does_not_count_as_another_admin(
    admin_client: Client, admin_user: User, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    address = f"/admin/chatapp/user/{admin_user.pk}/change/"
    response = admin_client.post(address, user_form(admin_user, is_staff=None))
    assert "This is the only admin" in response.content.decode()


def test_deactivating_a_user_ends_their_sessions(
    admin_client: Client, browser_client: Callable[[User], Client], alice: User
) -> None:
    hers = browser_client(alice)
    assert hers.get("/api/v1/me").status_code != 401
    form = {"action": "deactivate", "_selected_action": str(alice.pk)}
    admin_client.post("/admin/chatapp/user/", form)
    alice.refresh_from_db()
    assert not alice.is_active
    assert hers.get("/").status_code == 302


def test_a_changed_address_is_the_only_one_that_signs_in(
    admin_client: Client, client: Client, settings: Settings
) -> None:
    settings.SIGNUP = "open"
    client.post("/accounts/signup/", {"email": "old@example.com", **PASSWORDS})
    user = User.objects.get(email="old@example.com")
    user.emailaddress_set.create(email="second@example.com", verified=True)
    admin_client.post(f"/admin/chatapp/user/{user.pk}/change/", user_form(user, name="Another"))
    assert user.emailaddress_set.filter(email="second@example.com").exists()
    admin_client.post(f"/admin/chatapp/user/{user.pk}/change/", user_form(user, email="new@example.com"))
    assert not user.emailaddress_set.exclude(email="new@example.com").exists()
    form = {"password": PASSWORDS["password1"]}
    assert Client().post("/accounts/login/", {**form, "login": "old@example.com"}).status_code == 200
    assert Client().post("/accounts/login/", {**form, "login": "new@example.com"}).status_code == 302


def test_an_operator_cannot_become_an_admin(
    browser_client: Callable[[User], Client], bob: User, admin_user: User
) -> None:
    grant_operator(bob)
    client = Client()
    client.force_login(bob)
    form = user_form(bob, is_superuser="on", name="Robert")
    assert client.post(f"/admin/chatapp/user/{bob.pk}/change/", form).status_code == 302
    bob.refresh_from_db()
    assert (bob.name, bob.is_superuser) == ("Robert", False)
    for page in ("change", "password"):
        address = f"/admin/chatapp/user/{admin_user.pk}/{page}/"
        form = {**PASSWORDS, "email": "admin@example.com", "usable_password": "true"}
        assert client.post(address, form).status_code == 403


def grant_operator(user: User) -> None:
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="chatapp"))
