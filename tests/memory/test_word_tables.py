"""No hand-made table of words is long in what reads texts: what they know of a language comes from libraries."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

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
    """Return the words of the longest table in a value: words listed in one collection, as alternatives of one pattern,
    or one behind the other in a text that is no sentence."""
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
    """Yield the words of a collection and of those in it; of longer texts each is looked at by itself."""
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
    """Yield the patterns that a value is or holds, at any depth."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, list | tuple | frozenset | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(one)


_SYNTAX = re.compile(r"\\[a-zA-Z]|\(\?P[<=]\w+[>)]?|\(\?[a-z-]+:?")
_SETS = re.compile(r"\[[^\]]*\]")
_WORD_OF_PATTERN = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963]){2,}")


def words_of(pattern: str) -> set[str]:
    """Return the words, or beginnings of words, that an expression is made of, of whatever texts it was put together."""
    return set(_WORD_OF_PATTERN.findall(_SYNTAX.sub(" ", _SETS.sub(".", pattern))))


def most_alternatives(parsed: object) -> int:
    """Return the alternatives of the longest alternation in a parsed expression."""
    if isinstance(parsed, tuple) and len(parsed) == 2 and str(parsed[0]) == "BRANCH":
        branches = parsed[1][1]
        return max(len(branches), *map(most_alternatives, branches))
    if isinstance(parsed, sre_parser.SubPattern | list | tuple):
        return max(map(most_alternatives, parsed), default=0)
    return 0


@pytest.mark.parametrize("path", sorted(ROOT.glob("memory/*.py")), ids=lambda path: path.stem)
def test_no_compiled_alternation_is_long(path: Path) -> None:
    """However it was put together: the words of a pattern may come from several texts."""
    module = importlib.import_module(f"memory.{path.stem}")
    counts = {
        (name, pattern.pattern): most_alternatives(sre_parser.parse(pattern.pattern, pattern.flags))
        for name, value in vars(module).items()
        for pattern in patterns_in(value)
    }
    assert {key: count for key, count in counts.items() if count > MOST_WORDS} == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_compiled_pattern_is_of_many_words(path: Path) -> None:
    """Alternatives that follow each other in one pattern are one table."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    counts = {
        # Of bytes, too.
        (name, pattern.pattern): len(words_of(os.fsdecode(pattern.pattern)))
        for name, value in vars(module).items()
        if not name.startswith("__")
        for pattern in patterns_in(value)
    }
    assert {key: count for key, count in counts.items() if count > MOST_WORDS} == {}


def test_the_words_of_a_pattern_are_counted_wherever_they_stand() -> None:
    assert words_of(r"\b(?P<who>my|our)\s+(?:dog|cat)\b[abc]{2}(?:\s+now)?") == {
        "my",
        "our",
        "dog",
        "cat",
        "now",
    }


def test_a_long_table_is_noticed_in_each_form() -> None:
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
