"""Which tests prove which mechanism: `make mechanisms` prints the table.

docs/mechanisms.toml lists the mechanisms. A test names those it proves with @pytest.mark.mechanism("fim.budget"). The
marks are read from the sources by pytest's collection rules, so that no test has to be imported.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs" / "mechanisms.toml"


def read_mechanisms() -> dict[str, str]:
    """Return the description of each mechanism by name."""
    groups = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return {f"{group}.{name}": text for group, names in groups.items() for name, text in names.items()}


def find_marks() -> dict[str, list[str]]:
    """Return the tests that prove each mechanism, as "file::test", by the mechanism's name."""
    marks: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.mechanism(" not in source:
            continue
        for test, names in _marked(ast.parse(source).body):
            for name in names:
                marks.setdefault(name, []).append(f"{path.relative_to(ROOT)}::{test}")
    return marks


def find_unproved() -> list[str]:
    """Return the mechanisms without a test, and the names in tests that are not mechanisms."""
    return sorted(set(read_mechanisms()) ^ set(find_marks()))


def _marked(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _marked(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
            for call in calls:
                if ast.unparse(call.func) == "pytest.mark.mechanism":
                    yield prefix + node.name, [ast.literal_eval(argument) for argument in call.args]


def main() -> int:
    marks = find_marks()
    for name, text in read_mechanisms().items():
        print(f"{name}\n    {text}")
        for test in marks.get(name, []):
            print(f"    - {test}")
    unproved = find_unproved()
    print(f"\n{len(read_mechanisms())} mechanisms, {len(set().union(*marks.values()))} tests.")
    for name in unproved:
        print(f"No test, or no such mechanism: {name}", file=sys.stderr)
    return 1 if unproved else 0


if __name__ == "__main__":
    sys.exit(main())
