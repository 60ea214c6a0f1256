"""Draws what the pages show of the code: the tables in data-model.md, the packages in architecture.md.

make er

What it makes stands between two markers in the page; a test compares it with the code.
"""

from __future__ import annotations

import os
import re
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.db.models import Model

DOCS = Path(__file__).parent
WIDTH = 118
MANY_TO_ONE, ONE_TO_ONE = "}o--||", "|o--||"
OPTIONAL = {MANY_TO_ONE: "}o--o|", ONE_TO_ONE: "|o--o|"}


def draw_tables() -> str:
    """Return a section for each package: a diagram of its tables, and their columns."""
    sections = []
    tables = tables_by_package()
    for level in reversed(read_levels()):
        for package in level:
            if package in tables:
                sections.append("\n".join(_package(package, tables[package])))
    return "\n\n".join(sections)


def draw_levels() -> str:
    """Return the three packages as a Mermaid graph, with one box for each level of chatapp's import contract."""
    levels = read_levels()
    names = [f"L{number}" for number in range(1, len(levels) + 1)]
    lines = [
        "```mermaid",
        "flowchart TB",
        '  enters["api · admin · tasks · views · consumer · serving · commands"]',
    ]
    lines.append('  subgraph chatapp["chatapp"]')
    lines += [f'    {name}["{" · ".join(level)}"]' for name, level in zip(names, levels, strict=True)]
    lines += [f"    {' --> '.join(names)}", "  end", "  enters --> chatapp --> agents --> memory", "```"]
    return "\n".join(lines)


def read_levels() -> list[list[str]]:
    """Return the packages of each level, the highest first, as import-linter holds them."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["chatapp"])
    return [[name.strip(" ()") for name in re.split(r"[:|]", layer)] for layer in layers]


def tables_by_package() -> dict[str, list[type[Model]]]:
    """Return our own tables by the package they are written in."""
    from django.apps import apps

    found: dict[str, list[type[Model]]] = {}
    for model in apps.get_app_config("chatapp").get_models():
        if not model._meta.proxy:
            found.setdefault(model.__module__.split(".")[1], []).append(model)
    return found


def _package(package: str, models: list[type[Model]]) -> Iterator[str]:
    yield f"## {package}\n```mermaid\nerDiagram"
    for model in models:
        relations = list(_relations(model))
        yield from relations or [f"  {model.__name__}"]
    yield "```"
    for model in models:
        columns = ", ".join(_column(field) for field in model._meta.local_fields if field.name != "id")
        yield textwrap.fill(f"- **{model.__name__}**: {columns}", WIDTH, subsequent_indent="  ")


def _relations(model: type[Model]) -> Iterator[str]:
    for field in model._meta.local_fields:
        if field.is_relation and field.related_model is not None:
            line = ONE_TO_ONE if field.one_to_one else MANY_TO_ONE
            line = OPTIONAL[line] if field.null else line
            yield f'  {model.__name__} {line} {_name_of(field.related_model)} : "{field.name}"'
    for many in model._meta.local_many_to_many:
        yield f'  {model.__name__} }}o--o{{ {_name_of(many.related_model)} : "{many.name}"'


def _column(field: Any) -> str:
    return f"{field.name} → {_name_of(field.related_model)}" if field.is_relation else f"{field.name}"


def _name_of(model: Any) -> str:
    return model if isinstance(model, str) else str(model.__name__)


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "data-model.md": ("tables", draw_tables),
    "architecture.md": ("levels", draw_levels),
}


def with_diagram(page: str) -> str:
    """Return the page's text with its diagram drawn from the code."""
    marker, draw = PAGES[page]
    text = (DOCS / page).read_text(encoding="utf-8")
    begin, end = f"<!-- {marker}: make er -->\n", f"\n<!-- /{marker} -->"
    before, rest = text.split(begin)
    return before + begin + draw() + end + rest.split(end)[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(DATA_DIR=folder, DJANGO_SETTINGS_MODULE="chatapp.settings", ENV_FILE=os.devnull)
        import django

        django.setup()
        for page in PAGES:
            (DOCS / page).write_text(with_diagram(page), encoding="utf-8")


if __name__ == "__main__":
    main()
