"""Workers reanalyse an index of an older version once and in pieces, while it can be searched."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from django.db.models import F, Value
from django.db.models.functions import Replace

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import tasks
from chatapp.recall import tasks as recall_tasks
from chatapp.recall.actions import indexing as index_actions
from chatapp.recall.actions.reanalysis import PIECES_AT_ONCE
from chatapp.recall.models import (
    SearchBlock,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SearchVectors,
    StoredClaim,
)
from chatapp.recall.selectors.reanalysis import DOCUMENTS_AT_ONCE, indexes_to_reanalyse
from chatapp.recall.user_search import search_memory
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db

MANY = 300
"""More than may stay unsealed, and more than one piece."""


def texts(user: User, query: str) -> list[str]:
    return [item.text for item in search_memory(user_id=user.pk, query=query, limit=5, now=NOW, zone=UTC)]


def write_as_before(user: User, wrong: str, right: str, *said: str) -> Conversation:
    """Index `said` as an older version might have, with the stem of `wrong`, a word of the same length, for `right`."""
    conversation = new_conversation(user)
    filler = [f"We talked about topic{number % 97} again." for number in range(MANY)]
    wrongly = [text.replace(right, wrong) for text in said]
    say(conversation, *wrongly, *filler)
    index_actions.index_conversation(conversation.pk)
    say(conversation, *wrongly)
    index_actions.index_conversation(conversation.pk)
    for row in Message.objects.filter(conversation=conversation):
        row.parts = [{"type": "text", "text": row.parts[0]["text"].replace(wrong, right)}]
        row.save(update_fields=["parts"])
    SearchOwner.objects.update(analysis_version=0, analysed_ordinal=0)
    return conversation


def work_until_done(limit: int = 20) -> int:
    """Do the work of sweep and worker, and return how often the worker was woken."""
    for woken in range(limit):
        owners = indexes_to_reanalyse()
        if not owners:
            return woken
        for owner_id in owners:
            recall_tasks.reanalyse_index(str(owner_id))
    raise AssertionError("it comes to no end")


def stored(user: User) -> list[Any]:
    """Seal the user's index and return everything that a search reads from it."""
    index_actions.seal_documents(at_least=1, user_id=user.pk)
    owner = SearchOwner.objects.get(user=user)
    documents = SearchDocument.objects.filter(owner=owner).order_by("ordinal")
    postings = SearchPosting.objects.filter(owner=owner).order_by("term", "block")
    claims = StoredClaim.objects.filter(user=user).order_by("said_at", "start")
    return [
        (owner.sealed_ordinal, owner.document_count, owner.total_length),
        [(row.ordinal, row.previous, row.length, bytes(row.terms), bytes(row.counts)) for row in documents],
        [(row.term, row.block, bytes(row.entries)) for row in postings],
        [bytes(row.columns) for row in SearchBlock.objects.filter(owner=owner).order_by("number")],
        list(claims.values_list("message", "entry", "key", "value", "superseded_by__message")),
    ]


def test_wrong_stems_of_an_older_version_are_corrected_in_place(alice: User) -> None:
    said = ("My boiler is in the cellar.", "Do not heat the boiler, boiler, boiler.")
    write_as_before(alice, "walrus", "boiler", *said)
    assert texts(alice, "boiler") == []
    work_until_done()
    assert set(texts(alice, "boiler")) == set(said)
    assert texts(alice, "walrus") == []
    corrected = stored(alice)
    index_actions.rebuild_index(alice.pk)
    assert corrected == stored(alice)


def test_reanalysis_runs_once_in_pieces_and_skips_new_documents(alice: User) -> None:
    conversation = write_as_before(alice, "walrus", "boiler", "My boiler is old.")
    say(conversation, *(f"Note {number}." for number in range(PIECES_AT_ONCE * DOCUMENTS_AT_ONCE)))
    index_actions.index_conversation(conversation.pk)
    assert work_until_done() == 2
    say(conversation, "And one more.")
    index_actions.index_conversation(conversation.pk)
    assert indexes_to_reanalyse() == []


def test_a_new_index_needs_no_reanalysis(alice: User) -> None:
    say(conversation := new_conversation(alice), "Hello there, lamp.")
    index_actions.index_conversation(conversation.pk)
    assert indexes_to_reanalyse() == []


def test_the_sweep_wakes_a_worker_for_an_older_index(
    alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    write_as_before(alice, "walrus", "boiler", "My boiler is old.")
    with django_capture_on_commit_callbacks() as callbacks:
        tasks.sweep()
    woken = [call.args[:2] for call in callbacks if getattr(call, "args", None)]
    assert ("chatapp.recall.tasks.reanalyse_index", str(SearchOwner.objects.get().pk)) in woken


def test_reanalysis_keeps_vectors_and_does_not_rewrite_correct_documents(alice: User) -> None:
    write_as_before(alice, "walrus", "boiler", "My boiler is old.")
    owner = SearchOwner.objects.get()
    SearchVectors.objects.create(owner=owner, ordinal=0, vectors=b"\0\0")
    work_until_done()
    assert SearchVectors.objects.filter(owner=owner, ordinal=0).exists()
    corrected = SearchOwner.objects.get()
    assert corrected.edition != owner.edition, "what processes keep of it is read again"
    SearchOwner.objects.update(analysis_version=0, analysed_ordinal=0)
    work_until_done()
    assert SearchOwner.objects.get().edition == corrected.edition


def test_an_entry_is_corrected_in_its_users_index_and_in_the_shared_one(alice: User) -> None:
    conversation = new_conversation(alice)
    [message] = say(conversation, "…")
    record_entry(
        compaction=finished_compaction(conversation),
        text="Alice collects walrus stamps.",
        first_message_id=message.pk,
        last_message_id=message.pk,
        at=NOW,
    )
    entry = MemoryEntry.objects.get()
    entry.scope = Agent.objects.create(name="Porter", shares_memory=True)
    entry.save(update_fields=["scope"])
    index_actions.index_entry(entry)
    assert SearchOwner.objects.filter(scope__isnull=False).count() == 1
    MemoryEntry.objects.update(text=Replace(F("text"), Value("walrus"), Value("boiler")))
    SearchOwner.objects.update(analysis_version=0, analysed_ordinal=0)
    work_until_done()
    assert texts(alice, "boiler") == ["Alice collects boiler stamps."]
    own, shared = (bytes(row.terms) for row in SearchDocument.objects.order_by("owner"))
    assert own == shared


def test_claims_are_extracted_again(alice: User) -> None:
    write_as_before(alice, "walrus", "boiler", "My boiler is red.", "Fine.", "My boiler is blue.")
    before = set(StoredClaim.objects.values_list("key", flat=True))
    assert before
    work_until_done()
    after = set(StoredClaim.objects.values_list("key", flat=True))
    assert after
    assert not after & before
    assert StoredClaim.objects.filter(superseded_by__isnull=False).exists()
