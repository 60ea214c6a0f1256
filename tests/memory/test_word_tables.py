"""Modules that read texts contain no long word tables, because knowledge of languages belongs in libraries."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
sre_parser = importlib.import_module("re._parser")
MODULES = sorted(
    path
    for folder in (
        "memory",
        "agents",
        "chatapp/recall",
        "chatapp/long_term",
        "chatapp/compaction",
        "chatapp/context",
    )
    for path in ROOT.glob(f"{folder}/**/*.py")
)
MOST_WORDS = 60
MOST_WORDS_OF_A_NAME = 3
_ALTERNATIVES = re.compile(r"[^\W\d_][\w'’ -]*(?:\|[^\W\d_][\w'’ -]*)+")
_PROSE = re.compile(r"[.:;,!?]\s")


def word_count(value: ast.expr) -> int:
    """Return the number of words of the longest table in a value: a collection of words, the alternatives of a pattern,
    or a string of words that is not prose."""
    counts = [0]
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            counts += [len(match[0].split("|")) for match in _ALTERNATIVES.finditer(node.value)]
            if not _PROSE.search(node.value):
                counts.append(sum(word.isalpha() for word in node.value.split()))
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            counts.append(sum(one.isalpha() for one in strings_in(node)))
    return max(counts)


def strings_in(node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> Iterator[str]:
    """Yield the words of a collection and its nested collections. Longer strings are counted separately."""
    for one in ast.walk(node):
        words = one.value.split() if isinstance(one, ast.Constant) and isinstance(one.value, str) else []
        yield from words if len(words) <= MOST_WORDS_OF_A_NAME else ()


def assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target), node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_word_table_is_long(path: Path) -> None:
    counts = {name: word_count(value) for name, value in assigned(ast.parse(path.read_text()))}
    assert {name: count for name, count in counts.items() if count > MOST_WORDS} == {}


def patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    """Yield the patterns in a value, at any depth."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | frozenset | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(one)


_SYNTAX = re.compile(r"\\[a-zA-Z]|\(\?P[<=]\w+[>)]?|\(\?[a-z-]+:?")
_SETS = re.compile(r"\[[^\]]*\]")
_WORD_OF_PATTERN = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963]){2,}")


def words_of(pattern: str) -> set[str]:
    """Return the words and parts of words in a pattern."""
    return set(_WORD_OF_PATTERN.findall(_SYNTAX.sub(" ", _SETS.sub(".", pattern))))


def most_alternatives(parsed: object) -> int:
    """Return the number of alternatives of the longest alternation in a parsed expression."""
    if isinstance(parsed, tuple) and len(parsed) == 2 and str(parsed[0]) == "BRANCH":
        branches = parsed[1][1]
        return max(len(branches), *map(most_alternatives, branches))
    if isinstance(parsed, sre_parser.SubPattern | list | tuple):
        return max(map(most_alternatives, parsed), default=0)
    return 0


def import_from(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("memory/**/*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_compiled_alternation_is_long(path: Path) -> None:
    """Check compiled patterns as well as strings, because a pattern may be joined from several strings."""
    module = import_from(path)
    counts = {
        (name, pattern.pattern): most_alternatives(sre_parser.parse(pattern.pattern, pattern.flags))
        for name, value in vars(module).items()
        for pattern in patterns_in(value)
    }
    assert {key: count for key, count in counts.items() if count > MOST_WORDS} == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_compiled_pattern_contains_many_words(path: Path) -> None:
    """Count the whole pattern, because a table may be split into several short alternations."""
    module = import_from(path)
    counts = {
        # Patterns may be bytes, too.
        (name, pattern.pattern): len(words_of(os.fsdecode(pattern.pattern)))
        for name, value in vars(module).items()
        if not name.startswith("__")
        for pattern in patterns_in(value)
    }
    assert {key: count for key, count in counts.items() if count > MOST_WORDS} == {}


def test_the_words_of_a_pattern_are_found_in_groups_and_between_them() -> None:
    assert words_of(r"\b(?P<who>my|our)\s+(?:dog|cat)\b[abc]{2}(?:\s+now)?") == {
        "my",
        "our",
        "dog",
        "cat",
        "now",
    }


def test_a_long_table_is_found_in_each_form() -> None:
    words = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=2)]
    forms = [
        repr(words),
        repr(" ".join(words)),
        repr(rf"\b(?:{'|'.join(words)})\b"),
        repr(dict.fromkeys(words, 1)),
    ]
    assert (
        most_alternatives(sre_parser.parse(f"x(?:{'|'.join(f'a{word}b|c{word}' for word in words)})"))
        > MOST_WORDS
    )
    for form in forms:
        assert word_count(ast.parse(form, mode="eval").body) > MOST_WORDS
