"""`make versions`: which pairs of Python and Django are tested, and with which packages."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    found = importlib.util.spec_from_file_location("ci_versions", ROOT / ".ci" / "versions.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_tested_versions_may_be_installed(versions: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [django] = [each for each in map(Requirement, project["dependencies"]) if each.name == "django"]
    assert all(line in django.specifier for line in versions.DJANGOS)
    assert "6.2" not in django.specifier
    assert "5.1" not in django.specifier
    pythons = SpecifierSet(project["requires-python"])
    assert all(version in pythons for version in versions.PYTHONS)
    assert "3.10" not in pythons
    assert all((ROOT / each).exists() for each in versions.TESTS)


def test_the_packages_are_those_of_the_lock_file_except_excluded_ones(versions: ModuleType) -> None:
    lock = versions.LOCK.read_text()
    kept = versions.without(versions.LEFT_OUT, lock)
    names = {line.partition("==")[0] for line in lock.splitlines() if line[:1].isalnum()}
    left = {line.partition("==")[0] for line in kept.splitlines() if line[:1].isalnum()}
    assert names - left == set(versions.LEFT_OUT)
    assert kept.count("--hash=") < lock.count("--hash=")


def test_only_a_python_of_the_right_version_is_found(
    versions: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ".".join(map(str, sys.version_info[:2]))
    for version in (here, "3.99"):
        (tmp_path / f"python{version}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert versions.find_python(here) == str(tmp_path / f"python{here}")
    assert versions.find_python("3.99") is None
