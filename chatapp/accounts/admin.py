"""Users, groups and API tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import ManyToManyField, QuerySet
from django.http import HttpRequest

from chatapp.accounts.group_access.models import GroupAccess
from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.selectors import is_only_admin
from chatapp.conversations.models import GroupRetention
from chatapp.forgetting.accounts import delete_account
from chatapp.operations import clock
from chatapp.operations.admin.pages import ViewOnlyAdmin

# Their pages would show second factors, session keys and secrets, with which operators could act as somebody else.
admin.site.unregister([Authenticator, UserSession, SocialAccount, SocialApp, SocialToken])


class NewUserForm(BaseUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("email", "name")
        field_classes: dict[str, Any] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, Any] = {}

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        stays_admin = cleaned.get("is_active", True) and cleaned.get(
            "is_superuser", self.instance.is_superuser
        )
        if not stays_admin and is_only_admin(self.instance):
            raise ValidationError("This is the only admin: make somebody else one first.")
        return cleaned


@admin.register(User)
class UserAdmin(DjangoUserAdmin):  # type: ignore[type-arg]
    form = UserForm
    add_form = NewUserForm
    add_form_template = None
    fieldsets = (
        (None, {"fields": ("email", "name", "password", "time_zone")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "name", "password1", "password2")}),)
    readonly_fields = ("last_login", "date_joined")
    list_display = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("email", "name")
    ordering = ("email",)
    actions = ("deactivate",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let admins delete one account at a time, but never the only admin."""
        return bool(request.user.is_superuser) and not (obj is not None and is_only_admin(obj))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {
            name: action for name, action in super().get_actions(request).items() if name != "delete_selected"
        }

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return a summary instead of the rows, whose content operators need not see."""
        summary = [f"{user.email}: conversations, memory, files, tokens, sessions and usage" for user in objs]
        return summary, {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_account(obj, now=clock.now())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Keep operators who are not admins from making themselves admins."""
        if request.user.is_superuser:
            return self.readonly_fields
        return (*self.readonly_fields, "is_staff", "is_superuser", "groups", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Keep operators who are not admins from changing an admin, whose password they could set."""
        is_protected = obj is not None and obj.is_superuser and not request.user.is_superuser
        return not is_protected and super().has_change_permission(request, obj)

    @admin.action(description="Deactivate: sign out and keep out", permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        chosen = queryset.filter(is_superuser=False, is_active=True)
        count = 0
        for user in chosen:  # one by one: each save also ends the user's connections
            user.is_active = False
            user.save(update_fields=["is_active"])
            count += 1
        self.message_user(request, f"{count} deactivated. Admins are deactivated one by one, in their form.")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Delete former addresses, with which allauth would still let the user sign in."""
        super().save_model(request, obj, form, change)
        EmailAddress.objects.filter(user=obj).exclude(email__iexact=obj.email).delete()


@admin.register(ApiToken)
class ApiTokenAdmin(ViewOnlyAdmin):
    """The secrets themselves are not stored; deleting a token locks its program out at once."""

    list_display = ("name", "prefix", "user", "scopes", "created_at", "last_used_at", "expires_at")
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__email")
    ordering = ("-created_at",)
    fields = ("name", "prefix", "user", "scopes", "created_at", "last_used_at", "expires_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)


admin.site.unregister(Group)  # Django's own page has no retention period


class RetentionInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic where it runs
    model = GroupRetention
    extra = 1


class AccessInline(admin.StackedInline):  # type: ignore[type-arg]
    model = GroupAccess
    extra = 1
    formfield_overrides: ClassVar = {ManyToManyField: {"widget": forms.CheckboxSelectMultiple}}


@admin.register(Group)
class GroupsAdmin(GroupAdmin):
    filter_horizontal = ()  # its widget names its parts in a way that screen readers do not read
    inlines = (AccessInline, RetentionInline)
    list_display = ("name", "retention")
