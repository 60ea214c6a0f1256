"""Forgetting a whole conversation, or all there is of a user: what is deleted, not emptied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.access import accessible_conversation, lock_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.files.actions import delete_repeating_offloads
from chatapp.files.models import Attachment, Offload
from chatapp.files.selectors import text_offloads
from chatapp.forgetting.actions import traces
from chatapp.forgetting.actions.clock import begin_forgetting
from chatapp.forgetting.actions.deletion import Detached, Leftovers, detach_conversation
from chatapp.forgetting.actions.forget import propose_recitations
from chatapp.forgetting.actions.profile import empty_profile, redact_profile
from chatapp.forgetting.actions.reach import lock_reach
from chatapp.forgetting.actions.removals import add_to_receipt
from chatapp.forgetting.actions.shared import forget_shared_entries, shared_of
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Removal
from chatapp.forgetting.selectors.citing import citing_conversations, saying_the_same
from chatapp.forgetting.selectors.forgotten import (
    conversations_of,
    offloading_conversations,
    sentences_of_answers,
    words_still_said,
)
from chatapp.long_term.actions import entries as memory_actions
from chatapp.long_term.actions.tombstones import raise_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions import indexing as search_actions
from chatapp.recall.analysis import vocabulary
from memory.redaction import Forgotten
from memory.sentences import split_sentences

MAX_QUOTED = 2_000
"""So many of a conversation's own messages are looked for in other conversations that recalled it."""


def forget_conversation(
    *, user: User, conversation_id: str | UUID, now: datetime, for_good: bool = False
) -> Begun:
    """It is gone for everybody when this returns, with its memory entries; `Begun` says what is left to do. Raises
    NotFound."""
    counts = _counts(accessible_conversation(user, conversation_id))
    with transaction.atomic():
        begin_forgetting(user.pk)
        conversation = accessible_conversation(user, conversation_id)
        entries = MemoryEntry.objects.filter(user=user, conversation=conversation)
        told = shared_of(user.pk, entries)
        reached = lock_reach(user.pk, {conversation.pk} | told.told, entries, now)
        conversation = lock_conversation(user, conversation_id)
        shared = forget_shared_entries(told, reached, now)
        removed = shared.removed + counts
        receipt = ForgetReceipt.objects.create(user=user, what=ForgetReceipt.What.CONVERSATION, at=now)
        detached = _detach(
            conversation,
            removed,
            now,
            for_good,
            forgets=True,
            repeating=saying_the_same({conversation.pk}) - {conversation.pk},
            receipt=receipt,
        )
        add_to_receipt(receipt, removed)
    return Begun(
        receipt,
        (detached.leftovers, *shared.leftovers),
        (*detached.ended_runs, *shared.ended_runs),
        (detached.removal,),
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """Conversations that are gone for everybody, and what is left to do: files first, then rows in pieces."""

    receipt: ForgetReceipt
    leftovers: tuple[Leftovers, ...]
    ended_runs: tuple[UUID, ...]
    removals: tuple[Removal, ...]


@dataclass(frozen=True, slots=True)
class Copies:
    """What a detached conversation said, and where that may have been repeated. Read before the transaction that
    redacts it: nobody can read the conversation any more, so nothing repeats it meanwhile."""

    gone: list[UUID]
    texts: list[str]
    answers: list[str]
    citing: set[UUID]
    common: set[str]


def read_copies(removal: Removal) -> Copies:
    home = removal.conversation_id
    gone = [home, *map(UUID, removal.entries)]
    texts = [*removal.entries.values(), *_said_texts(home)]
    citing, answers = _citing(removal.user_id, home, conversations_of(removal.user_id), gone, texts)
    common = words_still_said(removal.user_id, frozenset[str]().union(*map(vocabulary.rare_words, texts)))
    return Copies(gone, texts, answers, citing, common)


def offloads_that_may_repeat(removal: Removal, copies: Copies) -> list[Offload]:
    """What was offloaded where the conversation is cited."""
    among = offloading_conversations(removal.user_id)
    citing, _ = _citing(removal.user_id, removal.conversation_id, among, copies.gone, copies.texts)
    return text_offloads(citing)


@transaction.atomic
def redact_copies_of(
    removal: Removal, copies: Copies, *, now: datetime, offloads: Collection[UUID] = ()
) -> tuple[tuple[Leftovers, ...], tuple[UUID, ...], ForgetProposal | None]:
    """What the user's other conversations and the profile have of it goes. `offloads` are those that were found to say
    it. Return what is left on disk, the runs that were ended, and the proposal to forget what says it again."""
    user = User.objects.get(pk=removal.user_id)
    begin_forgetting(user.pk)
    removed: Counter[str] = Counter()
    runs: list[UUID] = []
    rows = lock_reach(user.pk, copies.citing, MemoryEntry.objects.none(), now)
    forgotten = Forgotten(copies.texts, vocabulary, common=copies.common)
    removed["profile_lines"] += redact_profile(user.pk, forgotten, now)
    stale: set[date] = set()
    # Of an answer only copies go, word for word: the words are not the user's, and much else may be said in them.
    copied = Forgotten(copies.answers if rows else (), vocabulary)
    for row in rows:
        runs += traces.stop_work(row, now)
        removed["summaries_redacted"] += traces.redact_compactions(row, forgotten)
        for words in (forgotten, copied):
            removed["events"] += traces.redact_events(row, words, changed={}, gone=copies.gone)
            removed["requests"] += traces.redact_runs(row, words)
            removed["messages_redacted"] += traces.redact_copies(row, words, runs, now)
        days, count = traces.redact_entries(row, forgotten)
        removed["entries_redacted"] += count
        memory_actions.mark_days_stale(user.pk, days)
        traces.redact_conversation(row, forgotten, now)
        stale |= days
    removed["requests"] += traces.forget_sent_profiles(user.pk, forgotten)
    files = delete_repeating_offloads(copies.citing, offloads, since=now)
    removed["offloaded"] += len(files)
    add_to_receipt(removal.receipt, removed)
    repeating = {UUID(one) for one in removal.repeating}
    proposal = propose_recitations(user, copies.citing | repeating, forgotten, now)
    removal.entries, removal.repeating = {}, []
    removal.phase = Removal.Phase.INDEX
    removal.save(update_fields=["entries", "repeating", "phase"])
    return (Leftovers(user.pk, tuple(sorted(stale)), offloads=tuple(files)),), tuple(runs), proposal


def _citing(
    user_id: UUID, home: UUID, among: QuerySet[Conversation], gone: Collection[UUID], texts: Sequence[str]
) -> tuple[set[UUID], list[str]]:
    """The others that cite it, and of its answers what no answer in the rest says too: such words tell nothing."""
    others = among.exclude(pk=home)
    citing = citing_conversations(others, gone, texts)
    said = [sentence.strip() for text in _answers(home) for sentence in split_sentences(text)]
    common = sentences_of_answers(user_id, {home, *citing})
    answers = [sentence for sentence in said if sentence not in common]
    return citing | citing_conversations(others, (), answers), answers


def _said_texts(home: UUID) -> list[str]:
    """The newest that its user said."""
    said = Message.objects.filter(conversation=home, role=Message.Role.USER).order_by("-position")
    return list(_texts(said[:MAX_QUOTED]))


def _answers(home: UUID) -> list[str]:
    """The newest of what was answered there, and what tools returned that was not here before."""
    rows = Message.objects.filter(conversation=home).exclude(role=Message.Role.USER)
    parts = list(rows.order_by("-position").values_list("parts", flat=True)[:MAX_QUOTED])
    return [
        text
        for some in parts
        for text in (message_values.text_of(some), *message_values.results_from_outside(some))
        if text
    ]


def forget_everything(*, user: User, now: datetime, for_good: bool = False) -> Begun:
    """One conversation after the other, each in its own transaction, then what belongs to none.

    Cut short, it has forgotten what it came to: asked again, it goes on.
    """
    with transaction.atomic():
        begin_forgetting(user.pk)
        told = shared_of(user.pk, MemoryEntry.objects.filter(user=user))
        entries = MemoryEntry.objects.filter(pk__in=told.ids)
        shared = forget_shared_entries(told, lock_reach(user.pk, told.told | told.homes, entries, now), now)
    removed, runs, leftovers = shared.removed, shared.ended_runs, shared.leftovers
    removals: list[Removal] = []
    for conversation in list(conversations_of(user.pk).order_by("pk")):
        counts = _counts(conversation)
        with transaction.atomic():
            entries = MemoryEntry.objects.filter(conversation=conversation)
            for row in lock_reach(user.pk, [conversation.pk], entries, now):
                detached = _detach(row, removed, now, for_good)
                removed.update(counts)
                runs += detached.ended_runs
                leftovers.append(detached.leftovers)
                removals.append(detached.removal)
    with transaction.atomic():
        begin_forgetting(user.pk)
        leftovers.append(_delete_rest(user, removed, now, for_good))
        receipt = ForgetReceipt.objects.create(user=user, what=ForgetReceipt.What.EVERYTHING, at=now)
        add_to_receipt(receipt, removed)
        Removal.objects.filter(pk__in=[one.pk for one in removals]).update(receipt=receipt)
        for one in removals:
            one.receipt = receipt
    return Begun(receipt, tuple(leftovers), tuple(runs), tuple(removals))


def _counts(conversation: Conversation) -> Counter[str]:
    """What goes with it, counted before anything is locked; files and tombstones are counted when they go."""
    return Counter(
        conversations=1,
        messages=Message.objects.filter(conversation=conversation).count(),
        entries=MemoryEntry.objects.filter(conversation=conversation).count(),
        summaries=conversation.compactions.count(),
        events=conversation.events.count(),
        requests=conversation.request_texts.count(),
        offloaded=conversation.offloads.count(),
    )


def _detach(
    conversation: Conversation, removed: Counter[str], now: datetime, for_good: bool, **how: Any
) -> Detached:
    """With its entries. It is never learned again."""
    is_learned = not conversation.temporary
    if is_learned:
        texts = conversation.memory_entries.values_list("text", flat=True)
        removed["tombstones"] += raise_tombstones(conversation.owner_id, texts, now, for_good=for_good)
    return detach_conversation(
        conversation, now=now, forget_memory=True, raises_tombstones=is_learned, for_good=for_good, **how
    )


def _texts(rows: QuerySet[Message]) -> Iterator[str]:
    for parts in rows.values_list("parts", flat=True).iterator():
        yield message_values.text_of(parts)


def _delete_rest(user: User, removed: Counter[str], now: datetime, for_good: bool) -> Leftovers:
    """Entries written by hand, uploads never sent, proposals, and the index."""
    entries = MemoryEntry.objects.filter(user=user)
    homes = entries.exclude(conversation=None).values_list("conversation", flat=True)
    lock_reach(user.pk, homes, entries, now)
    days = tuple(sorted(set(entries.values_list("day", flat=True))))
    removed["entries"] += entries.count()
    learned = entries.values_list("text", flat=True)
    removed["tombstones"] += raise_tombstones(user.pk, learned, now, for_good=for_good)
    memory_actions.mark_days_stale(user.pk, days)
    entries.delete()
    uploads = Attachment.objects.filter(user=user)
    hashes = tuple(uploads.values_list("sha256", flat=True))
    removed["files"] += len(hashes)
    uploads.delete()
    ForgetProposal.objects.filter(user=user).delete()
    removed["profile_lines"] += empty_profile(user.pk, now)
    search_actions.delete_index(user.pk)
    return Leftovers(user_id=user.pk, days=days, hashes=hashes)
