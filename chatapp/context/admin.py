"""The form field for context policies that all admin forms share, with its validation."""

from __future__ import annotations

import json
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from chatapp.operations.admin.fields import Guide, Part, YamlField
from chatapp.operations.translations import translate_sentence
from memory.errors import PolicyError
from memory.window.policy import ContextPolicy, EffectivePolicy, check_written

OF_SEVERAL_LINES = {"summary_schema", "summary_template", "compact_prompt"}
KINDS: dict[str, Literal["number", "text", "flag"]] = {
    "integer": "number",
    "number": "number",
    "boolean": "flag",
    "string": "text",
}


def policy_parts() -> tuple[Part, ...]:
    """Return the policy's fields as a form shows them, without multi-line texts."""
    found = ContextPolicy.model_json_schema()["properties"].items()
    return tuple(_part_of(name, schema) for name, schema in found if name not in OF_SEVERAL_LINES)


def _part_of(name: str, schema: dict[str, Any]) -> Part:
    what = schema.get("description", "")
    default = json.dumps(schema.get("default")).strip('"')
    if "enum" in schema:
        return Part(name, "choice", what, default, tuple(schema["enum"]))
    # For an optional field, pydantic writes `anyOf`: its type, then null.
    plain = schema if "type" in schema else schema["anyOf"][0]
    return Part(name, KINDS[plain["type"]], what, "" if default == "null" else default)


class PolicyField(YamlField):
    guide = Guide(
        "fields",
        policy_parts(),
        {
            gettext_noop("Long answers first"): "keep_recent: 6\nmax_output_tokens: 16000\ntrigger: 0.6",
            gettext_noop("Keep more of the chat"): "keep_recent: 30\nrecall_tokens: 1000",
            gettext_noop(
                "Careful summaries"
            ): "strategy: structured\nsummary_max_tokens: 2048\nwait_for_summary: true",
            gettext_noop("Only the newest turns"): "strategy: turns\nmax_turns: 20",
        },
    )


POLICY_HELP = _("Fields with their values, as YAML, such as keep_recent: 20")


def check_policy_field(policy: Any, level: str) -> dict[str, Any]:
    """Return the policy as it is stored. Raise ValidationError, which names the field."""
    if not isinstance(policy, dict):
        raise ValidationError(gettext("Enter fields with their values, such as keep_recent: 20."))
    try:
        check_written(level, policy)
    except PolicyError as error:
        raise ValidationError(
            f"{error.field} ({gettext(error.origin)}): {translate_sentence(error.problem)}"
        ) from None
    return policy


ORIGINS = {
    "default": gettext_noop("built in"),
    "environment": gettext_noop("the environment"),
    "model": gettext_noop("the model"),
    "agent": gettext_noop("this agent"),
    "hooks": gettext_noop("hooks that compact"),
}


def _level(origin: str) -> str:
    return gettext(ORIGINS.get(origin, origin))


def policy_table(effective: EffectivePolicy) -> SafeString:
    values = effective.policy.model_dump(mode="json")
    rows = (
        (
            name,
            "" if value is None else str(value),
            _level(effective.origins[name]),
            translate_sentence(ContextPolicy.model_fields[name].description or ""),
        )
        for name, value in values.items()
    )
    body = format_html_join(
        "", "<tr><th><code>{}</code></th><td><code>{}</code></td><td>{}</td><td>{}</td></tr>", rows
    )
    return format_html(
        "<table><thead><tr><th>{}</th><th>{}</th><th>{}</th><th></th></tr></thead><tbody>{}</tbody></table>",
        gettext("setting"),
        gettext("value"),
        gettext("from"),
        body,
    )
