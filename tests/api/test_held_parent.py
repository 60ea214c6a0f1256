"""A message held by a Stop: edited, and used by a client as the `parent` of its next message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC
from uuid import UUID

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import is_queued
from chatapp.operations import clock
from chatapp.operations.errors import Conflict
from chatapp.recall.actions.indexing import delete_index, index_conversation, index_some
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.claims import hashed_claims
from chatapp.recall.user_search import search_memory
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.injected_messages import edit_queued, inject_message, send_queued
from chatapp.runs.actions.runs import Lease, PartialAnswer, claim_run
from chatapp.runs.actions.sending import NewMessage, Receipt, send_message
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def send(user: User, conversation: Conversation, text: str, **more: str) -> Receipt:
    new = NewMessage(text=text, **more)
    return send_message(user=user, conversation_id=str(conversation.pk), new=new, model=None, now=clock.now())


def finish(receipt: Receipt, lease: Lease, status: str) -> None:
    finish_run(lease=lease, outcome=Outcome(status, PartialAnswer(lease, "Words.")), now=clock.now())


def claim(receipt: Receipt) -> Lease:
    run = Run.objects.get(pk=receipt.run_id)
    lease = claim_run(run_id=run.pk, holder="here", model_name="m", now=clock.now())
    assert lease is not None
    return lease


def hold(user: User, conversation: Conversation, text: str) -> str:
    """Send a message during an answer, stop the answer, and index the conversation as the worker does."""
    first = send(user, conversation, "First?")
    lease = claim(first)
    new = NewMessage(text=text)
    held = inject_message(user=user, conversation_id=str(conversation.pk), new=new, now=clock.now())
    finish(first, lease, Run.Status.STOPPED)
    index_conversation(conversation.pk)
    return held.message_id


def edit(user: User, conversation: Conversation, message_id: str, text: str) -> None:
    new, home = NewMessage(text=text), str(conversation.pk)
    assert edit_queued(user=user, conversation_id=home, message_id=message_id, new=new, now=clock.now())


def found(user: User, query: str) -> list[str]:
    items = search_memory(user_id=user.pk, query=query, limit=5, now=clock.now(), zone=UTC)
    return [item.text for item in items]


def test_an_edited_held_message_is_found_by_its_new_words(alice: User) -> None:
    conversation = create_conversation(user=alice, now=clock.now())
    held = hold(alice, conversation, "My locker code is 4711.")
    before = set(StoredClaim.objects.filter(message=held).values_list("key", "value"))
    assert before
    edit(alice, conversation, held, "My locker code is 9925, behind the boiler.")
    assert found(alice, "boiler") == ["My locker code is 9925, behind the boiler."]
    assert found(alice, "4711") == []
    claims = StoredClaim.objects.filter(message=held)
    assert {key for key, _ in before} <= set(claims.values_list("key", flat=True))
    assert before.isdisjoint(claims.values_list("key", "value"))


class ThenEdited(deque[UUID]):
    """Conversations to index. Calls `edit` when the last one is taken, and the others are read but not stored."""

    edit: Callable[[], object]

    def popleft(self) -> UUID:
        if len(self) == 1:
            self.edit()
        return super().popleft()


def test_a_held_message_that_is_edited_during_indexing_is_found_by_its_new_words(
    alice: User,
) -> None:
    conversation, other = (create_conversation(user=alice, now=clock.now()) for _ in range(2))
    held = hold(alice, conversation, "My locker code is 4711.")
    delete_index(alice.pk)
    StoredClaim.objects.all().delete()
    waiting = ThenEdited([conversation.pk, other.pk])
    waiting.edit = lambda: edit(alice, conversation, held, "My locker code is 9925, behind the boiler.")
    while waiting:  # a slow machine indexes fewer at once
        index_some(waiting)
    assert found(alice, "boiler") == ["My locker code is 9925, behind the boiler."]
    assert found(alice, "4711") == []
    values = set(StoredClaim.objects.filter(message=held).values_list("key", "value"))
    assert values == {claim[:2] for claim in hashed_claims("My locker code is 9925, behind the boiler.")}


def test_an_edit_in_a_temporary_conversation_leaves_no_trace_in_the_index(alice: User) -> None:
    conversation = create_conversation(user=alice, temporary=True, now=clock.now())
    held = hold(alice, conversation, "My locker code is 4711.")
    edit(alice, conversation, held, "My locker code is 9925.")
    assert found(alice, "locker") == []
    assert not StoredClaim.objects.exists()


def test_a_held_message_that_was_answered_is_no_longer_queued(alice: User) -> None:
    conversation = create_conversation(user=alice, now=clock.now())
    first = send(alice, conversation, "First?")
    lease = claim(first)
    new = NewMessage(text="Held.")
    held = inject_message(user=alice, conversation_id=str(conversation.pk), new=new, now=clock.now())
    finish(first, lease, Run.Status.STOPPED)

    # Same as without `parent`: append at the end, so that the held message is sent along.
    second = send(alice, conversation, "Second?", parent_id=held.message_id)
    finish(second, claim(second), Run.Status.COMPLETE)

    row = Message.objects.select_related("parent").get(pk=held.message_id)
    assert not is_queued(row), "it was in the request of the second answer, and shows as waiting"
    with pytest.raises(Conflict):
        # Otherwise a third run would answer the answered message, below a message in the middle.
        send_queued(user=alice, conversation_id=str(conversation.pk), now=clock.now())
