"""A context policy as operators write it down: the check that all their forms share."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

from chatapp.text import is_storable
from memory.errors import PolicyError
from memory.policy import merge_policies


def check_policy_field(policy: Any, level: str) -> dict[str, Any]:
    """As it is stored. Raises ValidationError, which names the field of the policy."""
    if not isinstance(policy, dict):
        raise ValidationError('Enter an object like {"keep_recent": 20}.')
    try:
        merge_policies((level, policy))
    except PolicyError as error:
        raise ValidationError(str(error)) from None
    if not is_storable(policy):
        raise ValidationError("There is a character or a number in it that cannot be stored.")
    return policy
