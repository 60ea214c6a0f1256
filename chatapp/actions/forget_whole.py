"""Forgetting a whole conversation, or all there is of a user: what is deleted, not emptied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from itertools import chain
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chatapp import mapping
from chatapp.actions import forget_traces as traces
from chatapp.actions import memory as memory_actions
from chatapp.actions import search as search_actions
from chatapp.actions.forget import Done, propose_recitations
from chatapp.actions.forget_clock import begin_forgetting
from chatapp.actions.forget_profile import empty_profile, redact_profile
from chatapp.actions.forget_reach import lock_reach
from chatapp.actions.forget_shared import forget_shared_entries, shared_of
from chatapp.actions.offloads import delete_repeating_offloads
from chatapp.actions.retention import Leftovers, delete_conversation_data
from chatapp.actions.tombstones import raise_tombstones
from chatapp.models import (
    Attachment,
    Conversation,
    ForgetProposal,
    ForgetReceipt,
    MemoryEntry,
    Message,
    Offload,
    Run,
    User,
)
from chatapp.search.index import vocabulary
from chatapp.selectors.access import accessible_conversation, lock_conversation
from chatapp.selectors.citing import citing_conversations, saying_the_same
from chatapp.selectors.forgetting import (
    conversation_ids_of,
    conversations_of,
    offloading_conversations,
    sentences_of_answers,
    words_still_said,
)
from chatapp.selectors.offloads import text_offloads
from memory.redaction import Forgotten
from memory.sentences import split_sentences

MAX_QUOTED = 2_000
"""So many of a conversation's own messages are looked for in other conversations that recalled it."""


@transaction.atomic
def forget_conversation(
    *,
    user: User,
    conversation_id: str | UUID,
    now: datetime,
    for_good: bool = False,
    offloads: Collection[UUID] = (),
) -> Done:
    """Its messages, summaries, events, files and memory entries, and what was made of them elsewhere. `offloads` are
    those that were found to say it, of `offloads_that_may_repeat`."""
    begin_forgetting(user.pk)
    conversation = accessible_conversation(user, conversation_id)
    entries = MemoryEntry.objects.filter(user=user, conversation=conversation)
    texts, told = _telling_texts(conversation), shared_of(user.pk, entries)
    gone = [conversation.pk, *entries.values_list("pk", flat=True)]
    citing, answers = _citing(conversation, conversations_of(user.pk), gone, texts)
    reached = lock_reach(user.pk, {conversation.pk} | citing | told.told, entries, now)
    conversation = lock_conversation(user, conversation_id)
    texts = _telling_texts(conversation)
    rows = [row for row in reached if row.pk in citing]
    repeating = citing | saying_the_same({conversation.pk}) - {conversation.pk}
    shared = forget_shared_entries(told, reached, now)
    removed = shared.removed
    runs, leftovers = _delete(conversation, removed, now, for_good)
    common = words_still_said(user.pk, frozenset[str]().union(*map(vocabulary.rare_words, texts)))
    forgotten = Forgotten(texts, vocabulary, common=common)
    removed["profile_lines"] += redact_profile(user.pk, forgotten, now)
    stale: set[date] = set()
    # Of an answer only copies go, word for word: the words are not the user's, and much else may be said in them.
    copied = Forgotten(answers if rows else (), vocabulary)
    for row in rows:
        runs += traces.stop_work(row, now)
        removed["summaries_redacted"] += traces.redact_compactions(row, forgotten)
        for words in (forgotten, copied):
            removed["events"] += traces.redact_events(row, words, changed={}, gone=gone)
            removed["requests"] += traces.redact_runs(row, words)
            removed["messages_redacted"] += traces.redact_copies(row, words, runs, now)
        days, count = traces.redact_entries(row, forgotten)
        removed["entries_redacted"] += count
        memory_actions.mark_days_stale(user.pk, days)
        traces.redact_conversation(row, forgotten, now)
        stale |= days
    removed["requests"] += traces.forget_sent_profiles(user.pk, forgotten)
    files = delete_repeating_offloads(citing, offloads, since=now)
    removed["offloaded"] += len(files)
    elsewhere = Leftovers(user.pk, tuple(sorted(stale)), offloads=tuple(files))
    receipt = _receipt(user, ForgetReceipt.What.CONVERSATION, removed, now)
    proposal = propose_recitations(user, repeating, forgotten, now)
    return Done(receipt, (leftovers, elsewhere, *shared.leftovers), (*runs, *shared.ended_runs), proposal)


def offloads_that_may_repeat(user: User, conversation_id: str | UUID) -> tuple[list[str], list[Offload]]:
    """What goes with this conversation, and what was offloaded elsewhere, where that is cited. Raises NotFound."""
    conversation = accessible_conversation(user, conversation_id)
    entries = MemoryEntry.objects.filter(user=user, conversation=conversation)
    gone = [conversation.pk, *entries.values_list("pk", flat=True)]
    texts = _telling_texts(conversation)
    citing, answers = _citing(conversation, offloading_conversations(user.pk), gone, texts)
    return [*texts, *answers], text_offloads(citing)


def _citing(
    conversation: Conversation, among: QuerySet[Conversation], gone: Collection[UUID], texts: Sequence[str]
) -> tuple[set[UUID], list[str]]:
    """The others that cite it, and of its answers what no answer in the rest says too: such words tell nothing."""
    others = among.exclude(pk=conversation.pk)
    citing = citing_conversations(others, gone, texts)
    said = [sentence.strip() for text in _answers(conversation) for sentence in split_sentences(text)]
    common = sentences_of_answers(conversation.user_id, {conversation.pk, *citing})
    answers = [sentence for sentence in said if sentence not in common]
    return citing | citing_conversations(others, (), answers), answers


def _telling_texts(conversation: Conversation) -> list[str]:
    """What memory and profile may have of it: its entries, and the newest that its user said."""
    said = Message.objects.filter(conversation=conversation, role=Message.Role.USER).order_by("-position")
    entries = MemoryEntry.objects.filter(conversation=conversation)
    return [*entries.values_list("text", flat=True), *_texts(said[:MAX_QUOTED])]


def _answers(conversation: Conversation) -> list[str]:
    """The newest of what was answered there, and what tools returned that was not here before."""
    rows = Message.objects.filter(conversation=conversation).exclude(role=Message.Role.USER)
    parts = list(rows.order_by("-position").values_list("parts", flat=True)[:MAX_QUOTED])
    return [
        text
        for some in parts
        for text in (mapping.text_of(some), *mapping.results_from_outside(some))
        if text
    ]


def forget_everything(*, user: User, now: datetime, for_good: bool = False) -> Done:
    """One conversation after the other, each in its own transaction, then what belongs to none.

    Cut short, it has forgotten what it came to: asked again, it goes on.
    """
    with transaction.atomic():
        begin_forgetting(user.pk)
        told = shared_of(user.pk, MemoryEntry.objects.filter(user=user))
        entries = MemoryEntry.objects.filter(pk__in=told.ids)
        shared = forget_shared_entries(told, lock_reach(user.pk, told.told | told.homes, entries, now), now)
    removed, runs, leftovers = shared.removed, shared.ended_runs, shared.leftovers
    for conversation_id in conversation_ids_of(user):
        with transaction.atomic():
            entries = MemoryEntry.objects.filter(conversation=conversation_id)
            for row in lock_reach(user.pk, [conversation_id], entries, now):
                ended, left = _delete(row, removed, now, for_good)
                runs += ended
                leftovers.append(left)
    with transaction.atomic():
        begin_forgetting(user.pk)
        leftovers.append(_delete_rest(user, removed, now, for_good))
        receipt = _receipt(user, ForgetReceipt.What.EVERYTHING, removed, now)
    return Done(receipt, tuple(leftovers), tuple(runs))


def _delete(
    conversation: Conversation, removed: Counter[str], now: datetime, for_good: bool
) -> tuple[list[UUID], Leftovers]:
    """The runs that have lost their conversation, and what is left on disk. It is never learned again."""
    runs = Run.objects.filter(conversation=conversation, status__in=Run.ACTIVE)
    active = list(runs.values_list("pk", flat=True))
    entries = MemoryEntry.objects.filter(conversation=conversation)
    said = Message.objects.filter(conversation=conversation, role=Message.Role.USER)
    removed.update(
        conversations=1,
        messages=Message.objects.filter(conversation=conversation).count(),
        entries=entries.count(),
        summaries=conversation.compactions.count(),
        events=conversation.events.count(),
        requests=conversation.request_texts.count(),
        offloaded=conversation.offloads.count(),
    )
    if not conversation.temporary:
        learned = chain(entries.values_list("text", flat=True), _texts(said))
        removed["tombstones"] += raise_tombstones(conversation.user_id, learned, now, for_good=for_good)
    leftovers = delete_conversation_data(conversation, forget_memory=True)
    removed["files"] += len(leftovers.hashes)
    return active, leftovers


def _texts(rows: QuerySet[Message]) -> Iterator[str]:
    for parts in rows.values_list("parts", flat=True).iterator():
        yield mapping.text_of(parts)


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


def _receipt(user: User, what: str, removed: Counter[str], now: datetime) -> ForgetReceipt:
    counts = {name: count for name, count in sorted(removed.items()) if count}
    return ForgetReceipt.objects.create(user=user, what=what, removed=counts, at=now)
