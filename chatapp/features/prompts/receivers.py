"""What a user takes away, or has forgotten, includes the prompts."""

from __future__ import annotations

from typing import Any

from chatapp.accounts.archive import adds_to_archive
from chatapp.accounts.models import User
from chatapp.features.prompts.actions import delete_prompts
from chatapp.features.prompts.selectors import prompt_files
from chatapp.forgetting.actions.whole import everything_forgotten


def forget_prompts(sender: Any, *, user: User, **_: Any) -> None:
    delete_prompts(user)


everything_forgotten.connect(forget_prompts, dispatch_uid="prompts.forget_prompts")
adds_to_archive(prompt_files)
