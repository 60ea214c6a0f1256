"""Base classes of admin pages: read-only lists, forms that handle races, rows that can be tested."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from chatapp.operations.translations import translate_sentence
from chatapp.providers.model_check import Check


class WordFilter(admin.AllValuesFieldListFilter):
    """Shows stored words in the language of the page, and "none" for an empty one."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": translate_sentence(str(choice["display"]) or "none")}


class ViewOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    # Django would count the whole table for each filtered page.
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def sums_of(self, rows: QuerySet[Any]) -> dict[str, Any]:
        """Return more context of the list's template: sums of the rows that the filters let through."""
        return {}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        # Django redirects if a filter is invalid.
        context = response.context_data if isinstance(response, TemplateResponse) else None
        if context and "cl" in context:
            context |= self.sums_of(context["cl"].queryset)
        return response


class SentAtOnce(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows an error if another write came between validating and saving a form. Error reports omit its fields."""

    @method_decorator(sensitive_post_parameters())
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except IntegrityError:  # nothing was stored; validating again finds the conflict
            return super().changeform_view(request, *args, **kwargs)


RowT = TypeVar("RowT", bound=Model)


class TestedAdmin(SentAtOnce, Generic[RowT]):
    """An admin for rows with a server that can be tested, from the list and from the form."""

    change_form_template = "admin/chatapp/tested/change_form.html"

    @abstractmethod
    def check_row(self, row: RowT) -> Check:
        """Test the server of a row, store the result and return it."""

    @admin.display(description=_("test"))
    def test_button(self, row: RowT) -> str:
        """Return a button that submits the list's form to another address, because forms cannot be nested."""
        address = reverse(f"admin:{self._url_name('test')}", args=[row.pk])
        button = '<button type="submit" class="button" formaction="{}">{}</button>'
        return format_html(button, address, gettext("Test"))

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(require_POST(self.test_view))
        # Before Django's own URLs, the last of which accepts any path as a key.
        return [path("<uuid:row_id>/test/", test, name=self._url_name("test")), *super().get_urls()]

    def test_view(self, request: HttpRequest, row_id: Any) -> HttpResponse:
        if not self.has_change_permission(request):
            raise PermissionDenied
        row = self.get_queryset(request).filter(pk=row_id).first()
        if row is None:
            raise Http404
        self.tell_check(request, row)
        return redirect(f"admin:{self._url_name('changelist')}")

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Test a saved row after its transaction, because a server may take a minute to respond."""
        response = super().changeform_view(request, *args, **kwargs)
        row = getattr(request, "saved_row", None)
        if row is not None and response.status_code == HTTPStatus.FOUND and self.needs_check(request):
            self.tell_check(request, row)
        return response

    def needs_check(self, request: HttpRequest) -> bool:
        return "_test" in request.POST

    def response_change(self, request: HttpRequest, obj: RowT) -> HttpResponse:
        request.saved_row = obj  # type: ignore[attr-defined]
        return redirect(request.path) if "_test" in request.POST else super().response_change(request, obj)

    def response_add(
        self, request: HttpRequest, obj: RowT, post_url_continue: str | None = None
    ) -> HttpResponse:
        request.saved_row = obj  # type: ignore[attr-defined]
        if "_test" in request.POST:
            return redirect(f"admin:{self._url_name('change')}", obj.pk)
        return super().response_add(request, obj, post_url_continue)

    def tell_check(self, request: HttpRequest, row: RowT) -> Check:
        check = self.check_row(row)
        level = messages.SUCCESS if check.is_working else messages.ERROR
        told = translate_sentence(check.text)
        self.message_user(request, told if told.startswith(str(row)) else f"{row}: {told}", level)
        return check

    def _url_name(self, view: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{view}"
