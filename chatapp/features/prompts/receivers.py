"""Exports and imports prompts with the account, and deletes them when a user forgets everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.dispatch import receiver
from pydantic import ValidationError

from chatapp.accounts.archive import adds_to_archive, takes_from_archive
from chatapp.accounts.models import User
from chatapp.features.prompts.actions import delete_prompts, keep_prompt
from chatapp.features.prompts.schemas import ExportedPrompt
from chatapp.features.prompts.selectors import own_prompts, prompt_files
from chatapp.forgetting.actions.forget_all import everything_forgotten
from chatapp.operations.errors import Conflict


@receiver(everything_forgotten)
def forget_prompts(sender: Any, *, user: User, **_: Any) -> None:
    delete_prompts(user)


def take_prompts(user: User, said: Iterable[Any]) -> Counter[str]:
    """Store the prompts of an export. Skip those whose name the user already has."""
    left_out: Counter[str] = Counter()
    known = set(own_prompts(user).values_list("name", flat=True))
    for each in said:
        try:
            prompt = ExportedPrompt.model_validate(each)
            # A retried import contains the same prompts again.
            if prompt.name not in known:
                keep_prompt(user=user, **prompt.model_dump())
                known.add(prompt.name)
        except ValidationError:
            left_out["prompts that cannot be read"] += 1
        except Conflict:
            left_out["prompts over your limit"] += 1
    return left_out


adds_to_archive(prompt_files)
takes_from_archive("prompts.json", take_prompts)
