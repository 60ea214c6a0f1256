"""Rows for the memory tests, created directly, because the sending of messages has its own tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Branch, Conversation, Message

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


def new_conversation(user: User, title: str = "", at: datetime = NOW, **fields: bool) -> Conversation:
    conversation = Conversation.objects.create(user=user, title=title, last_activity_at=at, **fields)
    conversation.branch = Branch.objects.create(conversation=conversation)
    conversation.save(update_fields=["branch"])
    return conversation


def say(
    conversation: Conversation, *texts: str, role: str = "", at: datetime = NOW, status: str = "complete"
) -> list[Message]:
    """Store these texts as messages, alternating between user and assistant unless `role` is given."""
    rows = [
        Message(
            conversation=conversation,
            branch=conversation.branch,
            user=conversation.user,
            position=conversation.next_position + number,
            role=role or ("user", "assistant")[(conversation.next_position + number) % 2],
            parts=[{"type": "text", "text": text}],
            status=status,
            created_at=at + timedelta(seconds=number),
        )
        for number, text in enumerate(texts)
    ]
    Message.objects.bulk_create(rows)
    conversation.next_position += len(rows)
    conversation.save(update_fields=["next_position"])
    return rows


def finished_compaction(conversation: Conversation, number: int = 0, summary: str = "") -> Compaction:
    assert conversation.branch is not None
    return Compaction.objects.create(
        conversation=conversation,
        branch=conversation.branch,
        first_position=number,
        last_position=number,
        message_count=1,
        kept_count=0,
        status=Compaction.Status.DONE,
        strategy="checkpoint",
        summary=summary,
        created_at=NOW,
    )
