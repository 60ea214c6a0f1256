"""Users, groups and API tokens."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.admin import EmailAddressAdmin
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db.models import ManyToManyField, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from chatapp.accounts.actions import delete_unconfirmed_claims, mark_address_verified
from chatapp.accounts.group_access.models import GroupAccess
from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.second_factors import remove_lost_factors
from chatapp.accounts.selectors import is_only_admin, owners_of
from chatapp.conversations.models import GroupRetention
from chatapp.forgetting.accounts import delete_account
from chatapp.operations import clock
from chatapp.operations.admin.pages import ViewOnlyAdmin

# Their pages would show second factors, session keys and secrets that let operators act as somebody else.
admin.site.unregister([Authenticator, UserSession, SocialAccount, SocialApp, SocialToken])


PERMISSIONS = {
    "add": gettext_noop("add"),
    "change": gettext_noop("change"),
    "delete": gettext_noop("delete"),
    "view": gettext_noop("view"),
}


class PermissionsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Shows the names of permissions in the page's language; Django stores them in English."""

    def label_from_instance(self, permission: Any) -> str:
        table = permission.content_type.model_class()
        done = gettext(PERMISSIONS[permission.codename.partition("_")[0]])
        return gettext("%(table)s: %(done)s") % {
            "table": capfirst(table._meta.verbose_name_plural),
            "done": done,
        }


class GivesPermissions(admin.ModelAdmin):  # type: ignore[type-arg]
    """Offers only permissions for tables in the panel, because others have no effect."""

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.remote_field.model is Permission:
            # A proxy has permissions of its own, which would be missing for its concrete table.
            tables = ContentType.objects.get_for_models(*admin.site._registry, for_concrete_models=False)
            rows = Permission.objects.filter(content_type__in=tables.values()).select_related("content_type")
            options |= {"form_class": PermissionsField, "queryset": rows}
        return super().formfield_for_manytomany(db_field, request, **options)


def checked_address(email: str, user: User) -> str:
    """Return the address in lower case. Raise ValidationError if it is new for the user and belongs to another account:
    neither of the two could sign in with it."""
    email = email.lower()
    if email != user.email and owners_of(email) - {user.pk}:
        raise ValidationError(_("There is an account with this email address already."))
    return email


class NewUserForm(BaseUserCreationForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("email", "name")
        # Django's form names a field class for `username`, which our user does not have.
        field_classes: dict[str, Any] = {}

    def clean_email(self) -> str:
        return checked_address(self.cleaned_data["email"], self.instance)


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = "__all__"
        field_classes: dict[str, Any] = {}

    def clean_email(self) -> str:
        return checked_address(self.cleaned_data["email"], self.instance)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        # An admin without `is_staff` cannot enter the panel to restore it.
        rights = ("is_active", "is_staff", "is_superuser")
        stays_admin = all(cleaned.get(right, getattr(self.instance, right)) for right in rights)
        if not stays_admin and is_only_admin(self.instance):
            raise ValidationError(_("This is the only admin: make somebody else one first."))
        return cleaned


@admin.register(User)
class UserAdmin(GivesPermissions, DjangoUserAdmin):  # type: ignore[type-arg]
    form = UserForm
    add_form = NewUserForm
    add_form_template = None
    fieldsets = (
        (None, {"fields": ("email", "name", "password", "time_zone")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "name", "password1", "password2")}),)
    readonly_fields = ("last_login", "date_joined")
    list_display = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("email", "name")
    ordering = ("email",)
    actions = ("deactivate", "remove_second_factors")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let admins delete one account at a time, but never the only admin."""
        return bool(request.user.is_superuser) and not (obj is not None and is_only_admin(obj))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # `delete_selected` would leave files behind, and could delete the only admin.
        return {
            name: action for name, action in super().get_actions(request).items() if name != "delete_selected"
        }

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return a summary instead of the rows, whose content operators do not need to see."""
        lost = gettext("%(email)s: conversations, memory, files, tokens, sessions and usage")
        summary = [lost % {"email": user.email} for user in objs]
        return summary, {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_account(obj, now=clock.now())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Keep operators who are not admins from making themselves admins, and from changing an address, which receives
        password reset mails."""
        if request.user.is_superuser:
            return self.readonly_fields
        fields = (*self.readonly_fields, "is_staff", "is_superuser", "groups", "user_permissions")
        return fields if obj is None else (*fields, "email")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Keep operators who are not admins from changing an admin or another operator: they could set the
        password."""
        is_protected = obj is not None and obj != request.user and (obj.is_superuser or obj.is_staff)
        is_free = bool(request.user.is_superuser) or not is_protected
        return is_free and super().has_change_permission(request, obj)

    @admin.action(description=_("Deactivate: sign out and keep out"), permissions=["change"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        # Skip admins: only their form checks that another one is left.
        chosen = queryset.filter(is_superuser=False, is_active=True)
        if not request.user.is_superuser:
            chosen = chosen.exclude(is_staff=True)
        count = 0
        for user in chosen:  # one by one: each save also ends the user's connections
            user.is_active = False
            user.save(update_fields=["is_active"])
            count += 1
        told = gettext("%(count)d deactivated. Admins are deactivated one by one, in their form.")
        self.message_user(request, told % {"count": count})

    def has_remove_second_factors_permission(self, request: HttpRequest) -> bool:
        """Allow only admins: an operator who may also set a password could act as somebody else."""
        return bool(request.user.is_superuser)

    @admin.action(
        description=_("Remove second factors: the password alone signs in"),
        permissions=["remove_second_factors"],
    )
    def remove_second_factors(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        removed = [remove_lost_factors(user=user, actor_id=request.user.pk) for user in queryset]
        told = gettext("Accounts whose second factors were removed: %(count)d. Their sessions have ended.")
        self.message_user(request, told % {"count": sum(map(bool, removed))})

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Delete former addresses if there is a new one: allauth would still accept them for sign-in."""
        super().save_model(request, obj, form, change)
        if "email" in form.changed_data:
            # Changing our column does not change allauth's rows.
            EmailAddress.objects.filter(user=obj).exclude(email=obj.email).delete()
            delete_unconfirmed_claims(email=obj.email)
            mark_address_verified(user=obj)


admin.site.unregister(EmailAddress)


@admin.register(EmailAddress)
class AddressAdmin(EmailAddressAdmin):  # type: ignore[misc] # allauth is not typed
    """Lets only admins write: an address that is added to an account receives its password reset mails."""

    # Without `permissions`, everybody who sees the list could run the action.
    @admin.action(description=EmailAddressAdmin.make_verified.short_description, permissions=["change"])
    def make_verified(self, request: HttpRequest, queryset: QuerySet[EmailAddress]) -> None:
        super().make_verified(request, queryset)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    has_change_permission = has_delete_permission = has_add_permission


@admin.register(ApiToken)
class ApiTokenAdmin(ViewOnlyAdmin):
    """Shows tokens, whose secrets are not stored. Deleting a token locks its program out at once."""

    list_display = ("name", "prefix", "user", "granted", "created_at", "last_used_at", "expires_at")
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__email")
    ordering = ("-created_at",)
    fields = ("name", "prefix", "user", "granted", "created_at", "last_used_at", "expires_at")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    @admin.display(description=_("scopes"))
    def granted(self, token: ApiToken) -> str:
        return format_html("<code>{}</code>", ", ".join(token.scopes))


admin.site.unregister(Group)  # Django's own page has no retention period


class OneInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic at runtime
    """A form for the one row that a group may have."""

    extra = 1

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Return a formset of one form, whatever the request says: Django would accept a thousand more."""
        return super().get_formset(request, obj, absolute_max=1, **kwargs)


class RetentionInline(OneInline):
    model = GroupRetention


class AccessInline(OneInline):
    model = GroupAccess
    formfield_overrides: ClassVar = {ManyToManyField: {"widget": forms.CheckboxSelectMultiple}}


@admin.register(Group)
class GroupsAdmin(GivesPermissions, GroupAdmin):  # type: ignore[misc]  # its base declares its options
    filter_horizontal = ()  # screen readers cannot read the labels of its widget
    inlines = (AccessInline, RetentionInline)
    list_display = ("name", "retention")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Keep operators who are not admins from giving themselves permissions through one of their groups."""
        return () if request.user.is_superuser else ("permissions",)
