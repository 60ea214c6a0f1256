"""Which schemas of other people's tools are used: none that reaches elsewhere, never ends, or hides words from us."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for

from agents.text import is_storable, is_visible, visible_line

MAX_CHARS = 20_000
MAX_DEPTH = 30
MAX_NODES = 10_000
"""With every reference followed: a small schema can stand for a check that never ends."""
_EXPLAINING = ("title", "description", "$comment")


def readable(schema: Any) -> Any:
    """Its explanations as a person sees them; names and values stay, because a server goes by them."""
    if isinstance(schema, list):
        return [readable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: visible_line(value) if key in _EXPLAINING and isinstance(value, str) else readable(value)
        for key, value in schema.items()
    }


def is_usable(schema: dict[str, Any]) -> bool:
    """Whether a model can be given it, and its arguments be checked here. A broken one is refused by the provider, with
    the whole request."""
    if len(json.dumps(schema)) > MAX_CHARS or not _is_plain(schema):
        return False
    if not is_storable(schema) or not is_visible(schema):
        return False
    return _expanded_size(schema) <= MAX_NODES and _is_valid(schema)


def _is_valid(schema: dict[str, Any]) -> bool:
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except (SchemaError, ValueError, TypeError, AttributeError):  # a `$schema` that is no address at all
        return False
    return True


def _is_plain(schema: Any, depth: int = 0) -> bool:
    """Nothing to be fetched from elsewhere, and not so deep that whoever walks it falls."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(schema, list):
        return all(_is_plain(item, depth + 1) for item in schema)
    if not isinstance(schema, dict):
        return True
    reference = schema.get("$ref", "#")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    return all(_is_plain(value, depth + 1) for value in schema.values())


def _expanded_size(schema: dict[str, Any]) -> int:
    """The nodes of the schema with what its references stand for in their places; a circle counts once."""
    known: dict[str, int] = {}

    def size(node: Any) -> int:
        if isinstance(node, list):
            return 1 + sum(size(item) for item in node)
        if not isinstance(node, dict):
            return 1
        reference = str(node.get("$ref", ""))
        if reference and reference not in known:
            known[reference] = 1
            known[reference] = size(_referred(schema, reference))
        return 1 + sum(size(value) for value in node.values()) + known.get(reference, 0)

    return size(schema)


def _referred(schema: Any, reference: str) -> Any:
    """What a `#/…` points at; None where there is nothing, which the check of a call will say."""
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        schema = schema.get(key) if isinstance(schema, dict) else None
    return schema


def without_patterns(schema: Any) -> Any:
    """Arguments are checked against the schema here, and a hostile regular expression takes for ever."""
    if isinstance(schema, list):
        return [without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_patterns(value)
        for key, value in schema.items()
        if key != "patternProperties" and not (key == "pattern" and isinstance(value, str))
    }
