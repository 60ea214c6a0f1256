"""Check the schemas of third-party tools: none may refer elsewhere, expand without end or hide text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents.libraries import Library
from agents.text import is_storable, is_visible, visible_line
from memory.language.neutral_text import neutralise

if TYPE_CHECKING:
    import jsonschema
else:
    jsonschema = Library("jsonschema")

MAX_CHARS = 20_000
MAX_DEPTH = 30
MAX_NODES = 10_000
"""Limit after following every reference: validating against a small schema could otherwise take forever."""
_EXPLAINING = ("title", "description", "$comment")
_NAMED_TARGETS = ("$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef")
"""Keywords of references that `_referred` does not follow, so that their expanded size is unknown."""


def readable(schema: Any) -> Any:
    """Return the schema with clean explanations. Names and values stay, because the server expects them."""
    if isinstance(schema, list):
        return [readable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: neutralise(visible_line(value))
        if key in _EXPLAINING and isinstance(value, str)
        else readable(value)
        for key, value in schema.items()
    }


def is_usable(schema: dict[str, Any]) -> bool:
    """Return whether a model can be given the schema, and arguments can be validated against it.

    A provider refuses the whole request for one invalid schema.
    """
    # A nested identifier changes the target of `#/…` below it. Drafts 3 and 4 call it `id`.
    is_old = any(draft in str(schema.get("$schema")) for draft in ("draft-03", "draft-04"))
    if len(json.dumps(schema)) > MAX_CHARS or not _is_plain(schema, "id" if is_old else "$id"):
        return False
    if not is_storable(schema) or not is_visible(schema):
        return False
    return _expanded_size(schema) <= MAX_NODES and _is_valid(schema)


def _is_valid(schema: dict[str, Any]) -> bool:
    try:
        jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(
            schema
        )
    except (
        jsonschema.SchemaError,
        ValueError,
        TypeError,
        AttributeError,
    ):  # a `$schema` that is not an address
        return False
    return True


def _is_plain(schema: Any, identifier: str, depth: int = 0) -> bool:
    """Return whether all references have the form `#/…` and the schema is not too deep for a recursive walk."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(schema, list):
        return all(_is_plain(item, identifier, depth + 1) for item in schema)
    if not isinstance(schema, dict):
        return True
    reference = schema.get("$ref", "#")
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return False
    # Properties may have these names, too, but their values are schemas.
    if any(isinstance(schema.get(name), str) for name in (*_NAMED_TARGETS, *([identifier] if depth else ()))):
        return False
    return all(_is_plain(value, identifier, depth + 1) for value in schema.values())


def _expanded_size(schema: dict[str, Any]) -> int:
    """Return the number of nodes after replacing each reference by its target; a cycle counts once."""
    known: dict[str, int] = {}

    def size(node: Any) -> int:
        if isinstance(node, list):
            return 1 + sum(size(item) for item in node)
        if not isinstance(node, dict):
            return 1
        reference = str(node.get("$ref", ""))
        if reference and reference not in known:
            # Set before the reference is followed, so that a cycle ends here.
            known[reference] = 1
            known[reference] = size(_referred(schema, reference))
        return 1 + sum(size(value) for value in node.values()) + known.get(reference, 0)

    return size(schema)


def _referred(schema: Any, reference: str) -> Any:
    """Return the target of a `#/…`; None if missing, which the validation of a call will report."""
    for step in reference.removeprefix("#").split("/")[1:]:
        # Replace `~1` first: `~01` means `~1`, not a slash.
        key = step.replace("~1", "/").replace("~0", "~")
        schema = schema.get(key) if isinstance(schema, dict) else None
    return schema


def without_slow_checks(schema: Any) -> Any:
    """Return the schema without regular expressions, because a hostile one can run forever, and without `uniqueItems`,
    which compares all pairs: two thousand items take seconds. The server makes both checks itself."""
    if isinstance(schema, list):
        return [without_slow_checks(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_slow_checks(value)
        for key, value in schema.items()
        if key != "patternProperties"
        # A property may have this name; its value is a schema then.
        and not (key == "pattern" and isinstance(value, str))
        and not (key == "uniqueItems" and isinstance(value, bool))
    }
