"""Two forms that give one name, sent at the same moment: the later is told so, as if it had been sent later."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse


class SentAtOnce(admin.ModelAdmin):  # type: ignore[type-arg]
    """A form is checked before it is stored, and what it is checked for can come in between."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except IntegrityError:  # nothing of it is stored: it is checked anew, and says what is wrong
            return super().changeform_view(request, object_id, form_url, extra_context)
