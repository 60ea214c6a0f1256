"""Requests to forget: finds matching messages and entries, proposes them, and forgets those the user confirms."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.forgetting.actions.forget import Done
from chatapp.forgetting.actions.proposals import propose_in_chat, record_proposal
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.selectors.forgotten import accessible_proposal, proposed_lines
from chatapp.forgetting.services import forget_chosen
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.recall.analysis import vocabulary
from chatapp.recall.user_search import search_memory
from memory.language.sentences import split_sentences
from memory.long_term.memory_requests import is_for_good, read_forget_request

LOOKED_AT = 40
LEAST_SHARE = 0.6
"""The share of the request's significant words that a match must contain."""
LEAST_LETTERS = 4
"""Shorter words do not match as prefixes of other words."""


def propose_forgetting(user: User, query: str, *, now: datetime) -> ForgetProposal:
    """Store a proposal of what the request may mean, best match first. Nothing is forgotten until it is confirmed."""
    return record_proposal(
        user=user, items=_find_meant(user, read_forget_request(query) or query, now), now=now
    )


def propose_for_message(message_id: UUID) -> None:
    """Propose what a request to forget in a chat may mean. For the worker; idempotent."""
    asked = Message.objects.select_related("conversation__user").filter(pk=message_id).first()
    request = read_forget_request(message_values.text_of(asked.parts)) if asked else None
    # Without a user the conversation was deleted or moved to the trash meanwhile.
    if asked is None or asked.conversation.user_id is None or request is None:
        return
    now = clock.now()
    items = _find_meant(asked.conversation.user, request, now, apart_from={asked.pk})
    if items:
        propose_in_chat(asked=asked, items=items, now=now)


def _find_meant(
    user: User, request: str, now: datetime, apart_from: Collection[UUID] = ()
) -> list[dict[str, Any]]:
    words = vocabulary.content_words_without_stops(request)
    found = (
        search_memory(user_id=user.pk, query=request, limit=LOOKED_AT, now=now, zone=user.zone)
        if words
        else []
    )
    items: list[dict[str, Any]] = []
    for one in found:
        if one.message_id in apart_from or not is_about(words, one.text):
            continue
        if one.message_id:
            items.append({"kind": "message", "id": str(one.message_id)})
        elif one.entry_id:
            items += _entry_item(user, one.entry_id, words)
    return items


def is_about(words: frozenset[str], text: str) -> bool:
    """Return whether the text has enough of the words, or longer or shorter forms that the stemmer left distinct."""
    said = vocabulary.content_words(text)
    missing = {word for word in words - said if said.isdisjoint(_beginnings(word))}
    # A message may have half a million words, so look each up only once per length of a missing word.
    lengths = {len(word) for word in missing if len(word) >= LEAST_LETTERS}
    missing.difference_update(one[:length] for length in lengths for one in said)
    return len(words) - len(missing) >= LEAST_SHARE * len(words)


def _beginnings(word: str) -> Iterator[str]:
    return (word[:length] for length in range(LEAST_LETTERS, len(word)))


def _entry_item(user: User, entry_id: UUID, words: frozenset[str]) -> list[dict[str, Any]]:
    """Return an item with only the matching sentences of the entry, because an entry may say much else."""
    entry = MemoryEntry.objects.filter(user=user, pk=entry_id).first()
    if entry is None:
        return []
    sentences = split_sentences(entry.text)
    meant = [number for number, sentence in enumerate(sentences) if is_about(words, sentence)]
    item = {"kind": "entry", "id": str(entry_id), "revision": entry.revision}
    return [{**item, "sentences": meant or list(range(len(sentences)))}]


def confirm_forgetting(
    user: User, proposal_id: str, item_ids: Collection[str], *, for_good: bool = False, now: datetime
) -> Done:
    """Forget the chosen items, the message with the request and its answers. If the proposal was confirmed before,
    return only its receipt. If `for_good` or the message says so, the sentences stay barred even if the user asks to
    remember them.

    Raise NotFound, also if all items are gone, and InvalidInput for ids that were not proposed.
    """
    proposal = accessible_proposal(user, proposal_id)
    if proposal.receipt is not None:
        return Done(proposal.receipt)
    kinds = {item["id"]: item["kind"] for item in proposal.items}
    unknown = sorted(set(item_ids) - set(kinds))
    if unknown or not item_ids:
        details = [{"field": "item_ids", "message": "must be ids of the proposal's items, at least one"}]
        raise InvalidInput("Choose one or more of the proposed items.", details=details)
    lines = proposed_lines(user, [item for item in proposal.items if item["id"] in item_ids])
    messages = [parse_id(item) for item in item_ids if kinds[item] == "message"]
    if proposal.asked_in:
        answers = Message.objects.filter(parent=proposal.asked_in)
        messages += [proposal.asked_in, *answers.values_list("pk", flat=True)]
    try:
        return forget_chosen(
            user,
            messages,
            lines,
            what=ForgetReceipt.What.CHOSEN,
            now=now,
            lines=lines,
            for_good=for_good or _asked_for_good(proposal),
            confirms=proposal,
        )
    except NotFound:
        # Another request may have confirmed it meanwhile.
        proposal = accessible_proposal(user, proposal_id)
        if proposal.receipt is None:
            raise
        return Done(proposal.receipt)


def _asked_for_good(proposal: ForgetProposal) -> bool:
    asked = Message.objects.filter(pk=proposal.asked_in).first() if proposal.asked_in else None
    return asked is not None and is_for_good(message_values.text_of(asked.parts))
