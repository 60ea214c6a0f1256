"""A context policy as operators write it down: the check that all their forms share."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.errors import PolicyError
from memory.policy import ContextPolicy, EffectivePolicy, merge_policies

POLICY_HELP = "Fields with their values, as YAML, such as keep_recent: 20"


def check_policy_field(policy: Any, level: str) -> dict[str, Any]:
    """Return the policy as it is stored. Raises ValidationError, which names the field."""
    if not isinstance(policy, dict):
        raise ValidationError("Enter fields with their values, such as keep_recent: 20.")
    try:
        merge_policies((level, policy))
    except PolicyError as error:
        raise ValidationError(str(error)) from None
    return policy


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
