"""The pages stay correct and readable: the files, names and links on them exist, lines and pages are short."""

from __future__ import annotations

import re

import pytest

from benchmarks.structure import CHANGES, recipe_steps
from docs.diagrams import DOCS, PAGES, with_diagram
from memory.window.policy import ContextPolicy

ROOT = DOCS.parent
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted(DOCS.glob("*.md")),
    )
}
NAMED = re.compile(
    r"`((?:agents|benchmarks|chatapp|docs|memory|static|tests)/[\w./-]*)(?::(\w+))?`(?! \(new\))"
)
LINKED = re.compile(r"\]\((?!https?:)([^)#]+)")
MAX_LINE, MAX_LINES = 120, 260
INVENTED = "chatapp/features/sharing/"
"""The folder that a recipe creates."""


@pytest.mark.parametrize("page", TEXTS)
def test_the_files_and_names_on_a_page_exist(page: str) -> None:
    missing = []
    for file, name in NAMED.findall(TEXTS[page]):
        path = ROOT / file
        if file.startswith(INVENTED):
            continue
        if not path.exists() or (name and not re.search(rf"\b{name}\b", path.read_text(encoding="utf-8"))):
            missing.append(f"{file}:{name}")
    assert missing == []


@pytest.mark.parametrize("page", TEXTS)
def test_the_targets_of_the_links_on_a_page_exist(page: str) -> None:
    folder = (ROOT / page).parent
    assert [link for link in LINKED.findall(TEXTS[page]) if not (folder / link).exists()] == []


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_and_its_lines_are_short(page: str) -> None:
    lines = TEXTS[page].splitlines()
    assert len(lines) <= MAX_LINES
    unbroken = ("|", "![", "  ")  # rows of tables, pictures, Mermaid
    assert [line for line in lines if len(line) > MAX_LINE and not line.startswith(unbroken)] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_diagram_on_a_page_is_up_to_date(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == with_diagram(page), "run `make er`"


@pytest.mark.parametrize("change", CHANGES)
def test_the_files_of_a_recipe_exist_or_are_new(change: str) -> None:
    steps = recipe_steps(change)
    assert steps
    assert [file for file, step in steps.items() if not (ROOT / file).exists() and "(new)" not in step] == []


def test_every_policy_setting_is_documented_with_its_default() -> None:
    section = TEXTS["docs/context.md"].split("\n## Settings\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line
    ]
    shown = {row[0].strip("`"): row[1] for row in rows[2:]}
    assert shown == {name: write_default(field.default) for name, field in ContextPolicy.model_fields.items()}


def write_default(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value) if value else "empty" if value == "" else "none"
