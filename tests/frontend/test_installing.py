"""The files that a browser needs to install the page: the manifest and the service worker."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client

from chatapp.features.offline.views import worker_text


@pytest.mark.django_db
def test_the_icons_of_the_manifest_have_the_stated_sizes(client: Client) -> None:
    manifest = json.loads(client.get("/manifest.webmanifest").content)
    assert (manifest["scope"], manifest["start_url"], manifest["display"]) == ("/", "/", "standalone")
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
    for icon in manifest["icons"]:
        file = Path(settings.STATIC_ROOT) / icon["src"].removeprefix(settings.STATIC_URL)
        assert file.is_file()
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", file.read_bytes()[16:24])
            assert icon["sizes"] == f"{width}x{height}"
    assert finders.find("app/icon-180.png")


@pytest.mark.django_db
def test_the_service_worker_differs_by_language(client: Client) -> None:
    answer = client.get("/service-worker.js")
    assert answer["Content-Type"].startswith("text/javascript")
    assert "no-store" in answer["Cache-Control"]
    assert answer.content.decode() == worker_text("en")
    english, chinese = (worker_text(language).splitlines()[1] for language in ("en", "zh-hans"))
    assert english != chinese
    page = client.get("/offline?language=zh-hans").content.decode()
    assert 'lang="zh-hans"' in page
    assert client.get("/offline?language=nonsense").status_code == 200
