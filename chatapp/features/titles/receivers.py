"""Creates title jobs, in the transaction that ends the first answer of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from agents.events import Fact, RunFinished
from chatapp.conversations.models import Conversation
from chatapp.features.titles.actions import create_title_job
from chatapp.features.titles.selectors import FIRST_MESSAGES, has_fast_models
from chatapp.realtime.event_log import facts_appended


@receiver(facts_appended)
def note_first_answer(sender: Any, *, conversation: Conversation, facts: Sequence[Fact], **_: Any) -> None:
    if conversation.next_position > FIRST_MESSAGES or conversation.temporary:
        return
    # `run.finished` is the last event of a run.
    last = facts[-1]
    if isinstance(last, RunFinished) and last.status == "complete" and has_fast_models():
        create_title_job(conversation, last.at)
