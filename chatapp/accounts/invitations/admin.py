"""The admin pages of invitations, including the form to invite somebody."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

from chatapp.accounts.invitations.actions import withdraw_invitation
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.invitations.services import Invited, invite
from chatapp.operations.admin.pages import ViewOnlyAdmin
from chatapp.operations.configuration.changeable_settings import current, has_mail
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.translations import translate_sentence


class InvitationForm(forms.Form):
    email = forms.EmailField(label=_("Email address of the invited person"), max_length=254)


@admin.register(Invitation)
class InvitationAdmin(ViewOnlyAdmin):
    list_display = ("email", "invited_by", "created_at", "expires_at")
    list_select_related = ("invited_by",)
    search_fields = ("email",)
    ordering = ("-created_at", "-id")
    fields = ("email", "invited_by", "created_at", "expires_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def delete_model(self, request: HttpRequest, obj: Invitation) -> None:
        withdraw_invitation(invitation=obj, actor=request.user)  # type: ignore[arg-type]  # an operator

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        # Withdraw one by one, because each withdrawal is an event of the audit log.
        for invitation in queryset:
            self.delete_model(request, invitation)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Invite an address; show the link once if no mail was sent."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = InvitationForm(request.POST or None)
        invited = self._invite(request, form) if form.is_valid() else None
        context = {
            **self.admin_site.each_context(request),
            **(extra_context or {}),
            "opts": self.opts,
            "title": _("Invite somebody"),
            "form": form if invited is None else InvitationForm(),
            "invited": invited,
            "is_closed": current("SIGNUP") == "closed",
            "has_mail": has_mail(),
        }
        return TemplateResponse(request, "admin/chatapp/invitation/add.html", context)

    def _invite(self, request: HttpRequest, form: InvitationForm) -> Invited | None:
        """Return the invitation, or None after adding an error to the form."""
        own_address = request.build_absolute_uri("/").rstrip("/")
        try:
            return invite(
                email=form.cleaned_data["email"],
                invited_by=request.user,  # type: ignore[arg-type]  # an operator
                own_address=own_address,
            )
        except (Conflict, InvalidInput) as error:
            form.add_error("email", translate_sentence(error.message))
            return None
