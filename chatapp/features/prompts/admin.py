"""The admin page of the operators' prompts. It does not show those of users."""

from __future__ import annotations

from typing import ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from chatapp.features.prompts.models import COMMANDS, Prompt
from chatapp.operations.admin.pages import SentAtOnce


class PromptForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Prompt
        fields = ("name", "about", "text")
        widgets: ClassVar = {"text": forms.Textarea(attrs={"rows": 14, "cols": 100})}

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in COMMANDS:
            raise ValidationError(gettext("/%(name)s is a command.") % {"name": name})
        # Django skips constraints with a column that is not in the form, here `owner`.
        others = Prompt.objects.filter(owner=None, name=name).exclude(pk=self.instance.pk)
        if others.exists():
            raise ValidationError(gettext("There is a prompt %(name)s already.") % {"name": name})
        return name


@admin.register(Prompt)
class PromptAdmin(SentAtOnce):
    form = PromptForm
    list_display = ("name", "about", "created_at")
    search_fields = ("name", "about")
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Prompt]:
        return Prompt.objects.filter(owner=None)
