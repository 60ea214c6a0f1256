"""Reads whether titles can be written, what they derive from, and which jobs wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chatapp.conversations.actions.conversations import title_from
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import SPOKEN
from chatapp.features.titles.models import TitleJob
from chatapp.operations.caching.editions import cached
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import model_of

FIRST_MESSAGES = 4
"""The first answer is among this many messages, even if it was retried once."""


@dataclass(frozen=True, slots=True)
class Untitled:
    """A conversation still named after its first message, with the input for its title."""

    conversation: Conversation
    model: ModelConfig
    question: str
    answer: str
    last_position: int
    forgotten_count: int


def has_fast_models() -> bool:
    rows = ModelConfig.objects.filter(enabled=True, fast_model__enabled=True)
    return cached("fast models", rows.exists)


def waiting_titles(now: datetime) -> Sequence[UUID]:
    return list(TitleJob.free(now).order_by("lease_expires_at", "pk").values_list("pk", flat=True)[:20])


def untitled(conversation_id: UUID) -> Untitled | None:
    """Return the conversation to name; None if it is gone, its user named it, or its model has no fast model."""
    rows = Conversation.objects.select_related(
        "user", "branch", "model__fast_model", "agent__model__fast_model"
    )
    conversation = rows.filter(pk=conversation_id, temporary=False, title_made_of=None).first()
    if conversation is None or conversation.branch is None:
        return None
    # Read the count before the messages: a forgetting after this point makes `store_title` refuse the title.
    forgotten_count = read_forgetting_count(conversation.forgetting_keys)
    model = model_of(conversation).fast_model
    if model is None or not model.enabled or model.kind == ModelConfig.Kind.DEMO:
        return None
    spoken = visible_messages(conversation.branch).filter(role__in=SPOKEN)
    first = spoken.order_by("position")[:FIRST_MESSAGES]
    said = [(row.role, text_of(row.parts), row.position) for row in first]
    question = next((text for role, text, _ in said if role == Message.Role.USER), "")
    answer = next((text for role, text, _ in said if role == Message.Role.ASSISTANT and text), "")
    if not question.strip() or not answer.strip() or conversation.title != title_from(question):
        return None
    return Untitled(conversation, model, question, answer, said[-1][2], forgotten_count)
