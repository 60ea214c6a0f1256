"""Checks the rules of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.databases import ON_BOTH
from tests.environment import ROOT

OURS = ("chatapp", "agents", "memory")
DJANGO_WORLD = {"django", "channels", "celery", "redis", "psycopg", "ninja", "allauth", "daphne", "twisted"}
TOP_LEVEL = {
    "manage.py", "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
    "docker-compose.yml", "Dockerfile", "requirements.lock", "requirements-dev.lock",
    "chatapp", "memory", "agents", "templates", "static", "tests", "docs", "benchmarks",
}  # fmt: skip


def sources(package: str) -> list[Path]:
    return [path for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts]


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno


def imports_of(package: str) -> set[str]:
    trees = [ast.parse(path.read_text()) for path in sources(package)]
    return {name.split(".")[0] for tree in trees for name, _ in imported_names(tree)}


def test_imports_follow_the_layers():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_only_urls_and_commands_import_a_feature():
    features = {path.parent.name for path in (ROOT / "chatapp" / "features").glob("*/__init__.py")}
    assert len(features) > 5
    users = {
        (feature, path.relative_to(ROOT / "chatapp").as_posix())
        for path in sources("chatapp")
        for name, _ in imported_names(ast.parse(path.read_text()))
        for feature in features
        if f"{name}.".startswith(f"chatapp.features.{feature}.")
    }
    assert {
        (feature, user)
        for feature, user in users
        if not user.startswith(("urls.py", "management/", f"features/{feature}/"))
    } == set()


def test_every_package_has_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["chatapp"])
    ordered = {package.strip() for layer in layers for package in layer.split(":")}
    packages = {path.parent.name for path in (ROOT / "chatapp").glob("*/__init__.py")}
    assert packages - ordered == {"features", "migrations", "management"}


@pytest.mark.parametrize("package", ["chatapp", "chatapp/operations", "memory", "agents"])
def test_the_root_of_a_large_package_has_at_most_twenty_entries(package):
    # Count packages, not folders: an earlier commit may have left folders of compiled modules.
    packages = list((ROOT / package).glob("*/__init__.py"))
    modules = [path for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    assert len(packages) + len(modules) <= 20


def test_memory_needs_only_pydantic_and_language_libraries():
    languages = {"sentencex", "snowballstemmer", "stopwordsiso"}
    assert imports_of("memory") - set(sys.stdlib_module_names) <= {
        "memory",
        "pydantic",
        "pydantic_core",
        *languages,
    }


def test_agents_do_not_import_django_or_chatapp():
    assert not imports_of("agents") & DJANGO_WORLD
    assert "chatapp" not in imports_of("agents")


def test_exactly_one_module_imports_openai():
    users = [
        path.relative_to(ROOT).as_posix()
        for package in OURS
        for path in sources(package)
        if any(name.split(".")[0] == "openai" for name, _ in imported_names(ast.parse(path.read_text())))
    ]
    assert users == ["agents/chat_models/openai_client.py"]


@pytest.mark.parametrize("package", OURS)
def test_no_function_imports_our_own_packages(package):
    found = []
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [line for name, line in imported_names(node) if name.split(".")[0] in OURS]
                found += [f"{path.relative_to(ROOT)}:{line}" for line in inner]
    assert not found


def orderings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the last column and the line of every ordering that is written as a literal."""
    for node in ast.walk(tree):
        columns: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            columns = node.args if node.func.attr in {"order_by", "latest", "earliest"} else []
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ordering":
            columns = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
        if columns and isinstance(columns[-1], ast.Constant):
            yield columns[-1].value.removeprefix("-"), node.lineno


def test_no_ordering_ends_with_a_time_that_two_rows_may_share():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources("chatapp")
        if "admin" not in path.with_suffix("").parts  # Django's change list adds the primary key itself
        for column, line in orderings(ast.parse(path.read_text()))
        if column == "at" or column.endswith("_at")
    ]
    assert found == []


def test_the_top_level_contains_only_known_names():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


def test_the_example_environment_lists_every_variable_the_settings_read():
    tree = ast.parse((ROOT / "chatapp" / "settings.py").read_text())
    read = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"text", "number", "flag", "words"}
        and isinstance(node.args[0], ast.Constant)
    }
    example = (ROOT / ".env.example").read_text()
    assert [name for name in sorted(read - {"ENV_FILE"}) if f"# {name}=" not in example] == []


def test_a_setting_that_changes_without_a_restart_is_read_in_one_place():
    names = "|".join([*settings.CHANGEABLE, "HAS_MAIL", "DEFAULT_FROM_EMAIL"])
    reads = re.compile(rf"\bsettings\.({names})\b")
    one_place = ROOT / "chatapp" / "operations" / "configuration" / "changeable_settings.py"
    others = [path for path in (ROOT / "chatapp").rglob("*.py") if path != one_place]
    found = [
        f"{path.relative_to(ROOT)}: {read[0]}" for path in others for read in reads.finditer(path.read_text())
    ]
    assert found == [], "ask chatapp.operations.configuration.changeable_settings"


def test_every_path_that_runs_on_both_databases_exists():
    missing = [place for place in ON_BOTH if not (ROOT / "tests" / place).exists()]
    assert not missing, f"tests/databases.py names {missing}"
