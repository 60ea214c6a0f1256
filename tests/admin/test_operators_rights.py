"""chatapp/accounts/admin.py: the limits of operators who are not admins."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, Permission
from django.test import Client

from chatapp.accounts.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def operator(user: User, *names: str) -> User:
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


def test_an_operator_cannot_gain_permissions_through_a_group(bob: User):
    """The operator may change groups and is a member of this one, so its permissions must be read-only."""
    group = Group.objects.create(name="Helpdesk")
    operator(bob, "view_group", "change_group").groups.add(group)
    wanted = Permission.objects.filter(
        codename__in=["change_user", "view_user", "delete_apitoken", "change_modelconfig"]
    )
    fields = {
        "name": "Support",
        "permissions": [row.pk for row in wanted],
        "access-TOTAL_FORMS": 0,
        "access-INITIAL_FORMS": 0,
        "retention-TOTAL_FORMS": 0,
        "retention-INITIAL_FORMS": 0,
    }
    assert signed_in(bob).post(f"/admin/auth/group/{group.pk}/change/", fields).status_code == 302
    group.refresh_from_db()
    assert (group.name, group.permissions.count()) == ("Support", 0)
    assert not User.objects.get(pk=bob.pk).has_perm("chatapp.change_user")


def test_an_operator_cannot_set_the_password_of_another_operator(alice: User, bob: User):
    """The other operator may have more rights, although neither is an admin."""
    operator(alice, "view_user", "change_user", "delete_apitoken", "change_modelconfig", "add_modelconfig")
    operator(bob, "view_user", "change_user")
    password = "correct horse battery 9"
    fields = {"password1": password, "password2": password, "usable_password": "true"}
    assert signed_in(bob).post(f"/admin/chatapp/user/{alice.pk}/password/", fields).status_code == 403
    assert not User.objects.get(pk=alice.pk).check_password(password)


def test_an_operator_cannot_change_the_email_addresses_of_accounts(admin_user: User, bob: User) -> None:
    """Password reset mails go to each address of an account, so an added address would give access to it."""
    names = ("view", "add", "change", "delete")
    operator(bob, *(f"{name}_emailaddress" for name in names))
    own = EmailAddress.objects.create(user=bob, email="also-bob@example.com")
    browser = signed_in(bob)
    fields = {"user": str(admin_user.pk), "email": "bobs@example.com", "verified": "on"}
    assert browser.get("/admin/account/emailaddress/").status_code == 200
    browser.post("/admin/account/emailaddress/add/", fields)
    browser.post(f"/admin/account/emailaddress/{own.pk}/change/", fields)
    browser.post("/admin/account/emailaddress/", {"action": "make_verified", "_selected_action": str(own.pk)})
    browser.post(f"/admin/account/emailaddress/{own.pk}/delete/", {"post": "yes"})
    assert list(EmailAddress.objects.values_list("user", "verified")) == [(bob.pk, False)]


def test_an_operator_can_create_accounts_but_not_change_their_addresses(alice: User, bob: User) -> None:
    operator(bob, "view_user", "add_user", "change_user")
    browser, email = signed_in(bob), alice.email
    fields = {"email": "bobs@example.com", "name": "Alice B.", "time_zone": "UTC", "is_active": "on"}
    assert browser.post(f"/admin/chatapp/user/{alice.pk}/change/", fields).status_code == 302
    alice.refresh_from_db()
    assert (alice.email, alice.name) == (email, "Alice B.")
    password = "correct horse battery 9"
    new = {"email": "erin@example.com", "name": "Erin", "password1": password, "password2": password}
    assert browser.post("/admin/chatapp/user/add/", new | {"usable_password": "true"}).status_code == 302
    assert User.objects.filter(email="erin@example.com").exists()
