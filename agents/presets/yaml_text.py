"""Read and write YAML with plain values that a database can store."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import yaml

from agents.text import UNSTORABLE
from memory.bounds import MAX_ID_CHARS

MAX_YAML_CHARS = 200_000


class YamlError(ValueError):
    """An error whose message follows “the file: ”."""


class PlaceError(ValueError):
    """A problem at a place in a document; the message names both."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


MERGE = "tag:yaml.org,2002:merge"


class _PlainLoader(yaml.SafeLoader):
    """Refuses aliases, because a few lines of them can expand to gigabytes, and duplicate keys, of which YAML keeps
    only the last."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise YamlError("it uses aliases (*), which are not supported")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if twice := next((key for key, count in counts.items() if count > 1), None):
            raise YamlError(f"it has the key “{twice[:MAX_ID_CHARS]}” twice in one place")
        merges = any(key.tag == MERGE for key, _ in node.value)
        count = len(node.value)
        found = super().construct_mapping(node, deep)
        # Two spellings of one value, such as `yes` and `on`, are duplicates. Merged keys may be overridden.
        if len(found) < count and not merges:
            raise YamlError("it has a key twice in one place")
        return found


def read_yaml(text: str) -> Any:
    """Parse YAML, or JSON, which YAML reads differently in a few places. Raise YamlError."""
    if len(text) > MAX_YAML_CHARS:
        raise YamlError(f"it has more than {MAX_YAML_CHARS:,} characters")
    try:
        return _plain(_parse(text))
    except YamlError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError):
        raise YamlError("it is not valid YAML") from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_read_object)
    except ValueError:
        return yaml.load(text, _PlainLoader)


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raise ValueError for a duplicate key, so that the YAML parser reports it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        found = {plain_key(key): _plain(inner) for key, inner in value.items()}
        # Two spellings of one key, such as `yes` and `on`, are duplicates.
        if len(found) < len(value):
            raise YamlError("it has a key twice in one place")
        return found
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return plain_scalar(value)


def plain_key(key: Any) -> str:
    """Return the key of a mapping as text. Raise YamlError."""
    # YAML 1.1 reads the key `on` as true.
    return "on" if key is True else str(plain_scalar(str(key)))


def plain_scalar(value: Any) -> Any:
    """Return the value as in JSON, a date as text. Raise YamlError."""
    match value:
        case str() if UNSTORABLE.search(value):
            raise YamlError("it contains a character that cannot be stored")
        case float() if not math.isfinite(value):
            raise YamlError("it contains a number that cannot be stored")
        case date():
            # datetime is a subclass of date.
            return value.isoformat()
        case None | bool() | int() | float() | str():
            return value
    raise YamlError(f"it contains an unsupported value of type {type(value).__name__}")


def fill_texts(value: Any, fill: Callable[[str, str], str], error: type[PlaceError], place: str = "") -> Any:
    """Return a parsed document with plain keys and values, each text replaced by `fill(text, place)`. Raise `error`."""
    try:
        if isinstance(value, Mapping):
            named = {plain_key(key): inner for key, inner in value.items()}
            return {
                key: fill_texts(inner, fill, error, f"{place}.{key}".strip("."))
                for key, inner in named.items()
            }
        if isinstance(value, list):
            return [fill_texts(inner, fill, error, f"{place}.{at}") for at, inner in enumerate(value)]
        return plain_scalar(fill(value, place) if isinstance(value, str) else value)
    except YamlError as problem:
        raise error(place or "the file", str(problem)) from None


def write_yaml(value: Any) -> str:
    """Return YAML that `read_yaml` can read."""
    written: str = yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100)
    return written


class _PlainDumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks, and repeats an object that occurs twice instead of using an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_text(dumper: _PlainDumper, text: str) -> yaml.ScalarNode:
    # U+0085 would be read as an ordinary line end unless it is escaped.
    style = '"' if "\x85" in text else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_PlainDumper.add_representer(str, _write_text)
