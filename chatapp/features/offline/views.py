"""The page shown without a connection, and the service worker that caches it."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import get_template, render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

import chatapp
from chatapp.operations.http.frontend import front_end_folder

# Everything that the page shows: nothing else can be loaded without a connection.
STATIC_PARTS = (
    "app/icon.svg",
    "app/theme-boot.js",
    "app/offline.js",
    "npm/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "npm/@fontsource-variable/newsreader/files/newsreader-latin-wght-normal.woff2",
)


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Show the page in `language`, because the service worker sends no cookies."""
    asked = request.GET.get("language")
    language = asked if asked in dict(settings.LANGUAGES) else translation.get_language()
    with translation.override(language):
        return render(request, "offline.html")


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker. Browsers compare its text at each visit, so it contains a version of the files."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return HttpResponse(worker_text(language), content_type="text/javascript; charset=utf-8")


@lru_cache(maxsize=len(settings.LANGUAGES))
def worker_text(language: str) -> str:
    styles = f"{front_end_folder()}css/entrance_page.css"
    files = [
        f"{reverse('offline')}?{urlencode({'language': language})}",
        *map(static, (styles, *STATIC_PARTS)),
    ]
    told = json.dumps(files)
    page = get_template("offline.html").template.source  # type: ignore[attr-defined]  # Django's engine has it
    version = hashlib.sha256(f"{chatapp.__version__}{told}{page}".encode()).hexdigest()[:16]
    # Not escaped: these are our own URLs, in a script.
    return render_to_string("service-worker.js", {"version": version, "files": mark_safe(told)})
