"""The policy in force, field by field, with where each value came from."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.policy import ContextPolicy, EffectivePolicy

ORIGINS = {
    "default": "built in",
    "environment": "the environment",
    "model": "the model",
    "agent": "this agent",
    "hooks": "hooks that compact",
}


def policy_table(effective: EffectivePolicy) -> SafeString:
    values = effective.policy.model_dump(mode="json")
    rows = (
        (
            name,
            "" if value is None else str(value),
            ORIGINS.get(effective.origins[name], effective.origins[name]),
            ContextPolicy.model_fields[name].description or "",
        )
        for name, value in values.items()
    )
    body = format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
    return format_html(
        "<table><thead><tr><th>setting</th><th>value</th><th>from</th><th></th></tr></thead>"
        "<tbody>{}</tbody></table>",
        body,
    )
