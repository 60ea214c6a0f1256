"""The Markdown export of a message with a document."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.export import markdown_pieces
from chatapp.conversations.models import Conversation
from chatapp.files.models import Attachment
from chatapp.operations import clock
from chatapp.runs.actions.sending import NewMessage, send_message

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_document_is_not_exported_as_an_image(alice: User) -> None:
    conversation = create_conversation(user=alice, now=clock.now())
    file = Attachment.objects.create(
        user=alice,
        name="report.pdf",
        mime_type="application/pdf",
        size_bytes=10,
        sha256="a" * 64,
        created_at=clock.now(),
    )
    new = NewMessage(text="Read this.", attachment_ids=[str(file.pk)])
    send_message(user=alice, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())
    text = "".join(markdown_pieces(Conversation.objects.select_related("branch").get(pk=conversation.pk)))
    assert "report.pdf" in text
    assert "[image: report.pdf" not in text
