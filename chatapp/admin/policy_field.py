"""A context policy as operators write it down: the check that all their forms share."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

from memory.errors import PolicyError
from memory.policy import merge_policies

POLICY_HELP = "Fields with their values, as YAML, such as keep_recent: 20"


def check_policy_field(policy: Any, level: str) -> dict[str, Any]:
    """As it is stored. Raises ValidationError, which names the field of the policy."""
    if not isinstance(policy, dict):
        raise ValidationError("Enter fields with their values, such as keep_recent: 20.")
    try:
        merge_policies((level, policy))
    except PolicyError as error:
        raise ValidationError(str(error)) from None
    return policy
