"""Only chosen npm files are served, and the import map contains every imported module."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.operations.http.frontend import (
    BARE_NAMES,
    NodeModulesFinder,
    build_import_map,
    import_map_json,
    preloaded_modules,
    source_modules,
)

APP = Path(settings.BASE_DIR) / "static" / "app"
IMPORT = re.compile(
    r"""(?:^import\s[^"']*?|^export\s[^"']*?from\s|^import\s|import\()["']([^"']+)["']""", re.MULTILINE
)


def test_only_chosen_files_of_node_modules_are_served() -> None:
    finder = NodeModulesFinder()
    assert finder.find("npm/preact/dist/preact.mjs")
    for name in (
        "npm/preact/package.json",
        "npm/typescript/package.json",
        "npm/katex/dist/../package.json",
        "npm/katex/dist/fonts/../../package.json",
        "preact/dist/preact.mjs",
        "npm/../package.json",
    ):
        assert not finder.find(name), name


def test_every_collected_file_is_found() -> None:
    finder = NodeModulesFinder()
    names = [name for name, _ in finder.list(None)]
    assert names
    assert all(finder.find(f"npm/{name}") for name in names)


def test_every_library_of_the_import_map_is_served() -> None:
    finder = NodeModulesFinder()
    assert [name for name in BARE_NAMES.values() if not finder.find(name)] == []


def test_every_import_of_our_modules_is_in_the_import_map(settings: Settings) -> None:
    settings.DEBUG = True
    known = build_import_map()["imports"]
    for name in source_modules():
        for specifier in IMPORT.findall((APP.parent / name).read_text()):
            is_relative = specifier.startswith(".")
            wanted = urljoin(f"{settings.STATIC_URL}{name}", specifier) if is_relative else specifier
            assert wanted in known, f"{name} imports {specifier}"


def test_the_import_map_cannot_end_its_script_element() -> None:
    assert "<" not in import_map_json()


def test_the_import_map_names_every_part_of_a_bundle() -> None:
    known = build_import_map()["imports"]
    relative = re.compile(r"""(?:import\(|from|import)\s*["'](\.[^"']+)["']""")
    parts = set()
    for plain, hashed in known.items():
        text = (Path(settings.STATIC_ROOT) / hashed.removeprefix(settings.STATIC_URL)).read_text()
        parts |= {urljoin(plain, name) for name in relative.findall(text)}
    assert {Path(part).name.partition("-")[0] for part in parts} >= {
        "katex",
        "highlight.min",
        "later",
        "chunk",
    }
    assert parts <= set(known)


def test_a_page_preloads_its_own_bundle_parts() -> None:
    main = preloaded_modules()["main"]
    assert main
    assert all(address.startswith(f"{settings.STATIC_URL}bundle/js/main/chunk-") for address in main)


@pytest.mark.django_db
def test_the_sign_in_page_loads_one_style_sheet(client: Client) -> None:
    page = client.get("/accounts/login/").content.decode()
    assert page.count('rel="stylesheet"') == 1
    assert "bundle/css/entrance_page." in page
