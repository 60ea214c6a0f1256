"""Removals that are interrupted, overtaken or joined by another forgetting leave nothing behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting import services
from chatapp.forgetting import tasks as forgetting_tasks
from chatapp.forgetting.accounts import delete_account
from chatapp.forgetting.actions.forget_all import forget_conversation, forget_everything
from chatapp.forgetting.models import Removal
from chatapp.forgetting.removing import Removing
from chatapp.forgetting.services import forget_message
from chatapp.long_term.actions.profile import write_profile
from chatapp.long_term.models import Profile
from chatapp.operations import clock
from chatapp.operations.database.work_budget import PIECE
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.models import SearchDocument
from chatapp.runs.models import Run, RunSource
from tests.forgetting.everywhere import files_with, tables_with
from tests.forgetting.lives import SECRET, live
from tests.forgetting.test_while_it_is_read import ask
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


def sweep() -> None:
    Removal.objects.update(lease_expires_at=clock.now() - timedelta(hours=1))
    for removal_id in list(Removal.objects.values_list("pk", flat=True)):
        forgetting_tasks.remove_rest(str(removal_id))


@pytest.mark.parametrize("how", ["conversation", "everything"])
def test_deleting_an_account_with_an_unfinished_removal_leaves_nothing(alice: User, how: str) -> None:
    life = live(alice)
    if how == "conversation":
        forget_conversation(user=alice, conversation_id=life.conversation.pk, now=clock.now())
    else:
        forget_everything(user=alice, now=clock.now())
    own = (str(alice.pk), str(life.conversation.pk))
    delete_account(alice, now=clock.now())
    assert tables_with(SECRET) == []
    assert not [file for file in files_with(SECRET) if any(name in str(file) for name in own)]
    assert not Conversation.with_unowned.exists()


def test_the_sweep_finishes_a_removal_of_a_deleted_user(alice: User) -> None:
    life = live(alice)
    forget_conversation(user=alice, conversation_id=life.conversation.pk, now=clock.now())
    left = Removal.objects.values().get()
    delete_account(alice, now=clock.now())
    Removal.objects.create(**{**left, "receipt_id": None})
    sweep()
    assert not Removal.objects.exists()


def test_finishing_a_deletion_that_the_sweep_finished_first_raises_nothing(alice: User) -> None:
    for number in range(3):
        say(new_conversation(alice), f"number {number}", "x")
    begun = forget_everything(user=alice, now=clock.now() - timedelta(seconds=100))
    sweep()
    assert not Removal.objects.exists()
    services.finish_begun(begun, clock.now(), services.IN_REQUEST)


def test_forgetting_adds_no_documents_to_a_conversation_that_is_being_removed(alice: User) -> None:
    [told] = say(new_conversation(alice), "My dentist is Dr Quillfeather in Elm Street 14.")
    conversation, run_id = ask(alice)
    run = Run.objects.get(pk=run_id)
    RunSource.objects.create(run=run, source_id=told.pk)
    answer = [{"type": "text", "text": "Answer about Zanzibar."}]
    Message.objects.filter(pk=run.answer_id).update(parts=answer, status="complete")
    index_conversation(conversation.pk)
    begun = forget_conversation(user=alice, conversation_id=conversation.pk, now=clock.now())
    removing = Removing(begun.removals[0], clock.now())
    removing.hide()
    while removing.removal.phase != Removal.Phase.ROWS:
        removing._step(PIECE)
    forget_message(alice, told.pk, now=clock.now())
    sweep()
    assert not SearchDocument.objects.filter(conversation=None, kind=SearchDocument.Kind.MESSAGE).exists()


def test_a_forgotten_sentence_does_not_match_inside_a_longer_word(alice: User) -> None:
    [told, _] = say(new_conversation(alice), "I like tea.", "Noted.")
    write_profile(user_id=alice.pk, text="- I like teaching maths.\n- My wife is Anna.", now=NOW)
    forget_message(alice, told.pk, now=clock.now())
    assert "I like teaching maths." in Profile.objects.get(user=alice).text
