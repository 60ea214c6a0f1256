"""docs/context.md stays true: what it names exists, each mechanism has a proof, and the settings are the real ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from memory.policy import ContextPolicy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "context.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w./-]+\.(?:py|js|mjs)(?:::?[^`]+)?)`", PAGE)))
PROOF = re.compile(r"`(tests/[\w./-]+\.(?:py|mjs))::([^`]+)`")
DESIGNS = ("FIM One", "Digitorn", "AgentScope", "CowAgent", "HolmesGPT", "What none of the five has")


@cache
def names_in(path: Path) -> frozenset[str]:
    """Top-level names of a Python file, and `Class.name` of what its classes hold."""
    return frozenset(_names(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from _names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))


def exists_in(path: Path, name: str) -> bool:
    if path.suffix == ".py":
        return name in names_in(path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".mjs":
        return f'test("{name}"' in text
    return bool(re.search(rf"\b(?:function|const|class) {re.escape(name)}\b", text))


def rows_of(design: str) -> list[list[str]]:
    """The cells of the section's table, without its head."""
    section = PAGE.split(f"\n## {design}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[1:]]


@pytest.mark.parametrize("named", NAMED)
def test_what_the_page_names_exists(named: str) -> None:
    file, _, name = named.partition(":")
    path = ROOT / file
    assert path.is_file()
    assert not name or exists_in(path, name.removeprefix(":"))


@pytest.mark.parametrize("design", DESIGNS)
def test_every_mechanism_has_a_place_and_a_test(design: str) -> None:
    rows = rows_of(design)
    assert len(rows) >= 4
    for mechanism, where, setting, proof in rows:
        assert ":" in where, mechanism
        assert setting, mechanism
        assert PROOF.search(proof), mechanism


def test_every_setting_is_on_the_page_with_its_default() -> None:
    shown = {row[0].strip("`"): row[1] for row in rows_of("Settings")}
    assert set(shown) == set(ContextPolicy.model_fields)
    for name, field in ContextPolicy.model_fields.items():
        assert shown[name] == write_default(field.default), name


def write_default(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value) if value else "empty" if value == "" else "none"
