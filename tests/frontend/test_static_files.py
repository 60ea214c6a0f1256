"""Which npm files are served, and whether the import map leads to every module that is imported."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.conf import settings

from chatapp.operations.frontend import (
    BARE_NAMES,
    NodeModulesFinder,
    build_import_map,
    import_map_json,
    source_modules,
)

pytestmark = pytest.mark.usefixtures("static_files")

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


def test_what_is_collected_is_what_is_found() -> None:
    finder = NodeModulesFinder()
    names = [name for name, _ in finder.list(None)]
    assert names
    assert all(finder.find(f"npm/{name}") for name in names)


def test_every_library_of_the_import_map_is_served() -> None:
    finder = NodeModulesFinder()
    assert [name for name in BARE_NAMES.values() if not finder.find(name)] == []


@pytest.mark.parametrize("name", source_modules())
def test_every_import_of_our_modules_is_in_the_import_map(name: str) -> None:
    known = build_import_map()["imports"]
    source = (APP.parent / name).read_text()
    for specifier in IMPORT.findall(source):
        is_relative = specifier.startswith(".")
        wanted = urljoin(f"{settings.STATIC_URL}{name}", specifier) if is_relative else specifier
        assert wanted in known, f"{name} imports {specifier}"


def test_the_import_map_cannot_end_its_script_element() -> None:
    assert "<" not in import_map_json()
