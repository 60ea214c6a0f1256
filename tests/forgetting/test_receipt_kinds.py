"""Every kind that a receipt counts has a name on the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.environment import ROOT

COUNTING = {"add_to_receipt", "set_in_receipt", "Counter", "removed.update", "work.removed.update"}


def kinds_counted() -> set[str]:
    files = (ROOT / "chatapp" / "forgetting").rglob("*.py")
    return {kind for file in files for kind in _kinds_in(ast.parse(file.read_text()))}


def _kinds_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] == "removed":
            yield from _constants(node.slice)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in COUNTING:
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)
            for given in node.args:
                if isinstance(given, ast.Dict):
                    yield from (kind for key in given.keys if key for kind in _constants(key))


def _constants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_the_page_names_exactly_the_kinds_that_receipts_count() -> None:
    page = (ROOT / "static" / "app" / "js" / "components" / "Receipt.js").read_text()
    named = set(re.findall(r"^  (\w+): t\(", page, re.MULTILINE))
    counted = kinds_counted()
    assert len(counted) > 10
    assert counted == named
