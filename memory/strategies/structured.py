"""Strategy `structured` (AgentScope): a summary in named fields, requested by a JSON schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memory.strategies.checkpoint import CheckpointStrategy
from memory.strategies.protocol import SummaryForm
from memory.summaries.summary_prompts import Hint, compaction_prompt

_FIELDS = {
    "task_overview": "What the user wants, and what counts as success.",
    "current_state": "What is done: results, files, decisions in force.",
    "important_discoveries": "Facts, constraints, errors and what solved them.",
    "next_steps": "What is to be done, in order; open questions.",
    "context_to_preserve": "Preferences, names, identifiers, promises.",
}
SUMMARY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": "string", "description": description} for name, description in _FIELDS.items()
    },
    "required": list(_FIELDS),
}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class StructuredStrategy(CheckpointStrategy):
    summarises_steps: bool = True

    def prompt(self, form: SummaryForm, hint: Hint = "general", keep: str = "") -> str:
        schema = json.dumps(form.schema or SUMMARY_SCHEMA, ensure_ascii=False)
        return compaction_prompt(
            hint, max_tokens=form.max_tokens, keep=keep, custom=form.prompt, schema_json=schema
        )

    def lay_out(self, answer: str, form: SummaryForm) -> str:
        fields = read_structured(answer, form.schema)
        return render_structured(fields, form.template, form.schema) if fields else answer


def field_names(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    properties = (schema or SUMMARY_SCHEMA).get("properties")
    return tuple(properties) if isinstance(properties, Mapping) else ()


def default_template(schema: Mapping[str, Any] | None = None) -> str:
    return "\n\n".join(
        f"## {name.replace('_', ' ').capitalize()}\n{{{name}}}" for name in field_names(schema)
    )


def read_structured(answer: str, schema: Mapping[str, Any] | None = None) -> dict[str, str] | None:
    """Return, as text, the fields of the first JSON object in an answer that has any of them; None without one."""
    names = field_names(schema)
    # Limited, because parsing from each brace may read to the end of the answer.
    for start in [match.start() for match in re.finditer(r"\{", answer)][:50]:
        try:
            # Models write line ends inside strings, which strict JSON rejects.
            value, _ = json.JSONDecoder(strict=False).raw_decode(answer, start)
        except ValueError:
            continue
        if isinstance(value, dict) and any(value.get(name) for name in names):
            return {name: _as_text(value.get(name)) for name in names}
    return None


def render_structured(
    fields: Mapping[str, str], template: str = "", schema: Mapping[str, Any] | None = None
) -> str:
    """Return a template with its {field} placeholders filled in, without empty sections."""
    text = _PLACEHOLDER.sub(
        lambda match: fields.get(match.group(1), match.group()), template or default_template(schema)
    )
    return re.sub(r"(?m)^## .*\n+(?=## |\Z)", "", text).strip()


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return "\n".join(f"- {_as_text(item)}" for item in value)
    return json.dumps(value, ensure_ascii=False)
