"""How many messages a request leaves out if the conversation has another, longer branch."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.context.inspector import inspect_context
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.actions.messages import append_message
from chatapp.conversations.branches import lineage_below, visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig

pytestmark = pytest.mark.django_db(transaction=True)


def say(
    conversation: Conversation, branch: Branch, count: int, parent: Message | None, words: int
) -> Message:
    for at in range(count):
        parent = append_message(
            conversation,
            branch=branch,
            role="assistant" if at % 2 else "user",
            parts=[{"type": "text", "text": f"Message {at} " * words}],
            parent=parent,
            now=clock.now(),
        )
    conversation.save()
    assert parent is not None
    return parent


@pytest.mark.parametrize("elsewhere", [0, 300])
def test_messages_of_other_branches_are_not_counted_as_left_out(alice: User, elsewhere: int) -> None:
    ModelConfig.objects.create(
        name="M",
        model_id="m",
        base_url="http://127.0.0.1:1",
        is_default=True,
        context_size=8_000,
        max_output_tokens=1_000,
    )
    conversation = create_conversation(user=alice, now=clock.now())
    first = conversation.branch
    assert first is not None
    root = say(conversation, first, 2, None, 5)
    if elsewhere:
        say(conversation, first, elsewhere, root, 5)
    branch = Branch.objects.create(conversation=conversation, lineage=lineage_below(root))
    say(conversation, branch, 120, root, 60)
    conversation.branch = branch
    conversation.save()

    seen = inspect_context(
        user=alice, conversation_id=str(conversation.pk), query="And now?", budget_tokens=None, model=None
    )
    in_request = {piece["message_id"] for piece in seen["messages"]} - {None}
    shown = visible_messages(branch).count()
    assert shown == 122
    assert seen["left_out"] == shown - len(in_request)
