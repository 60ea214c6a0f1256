"""Finds what a summarised span adds to its user's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from uuid import UUID

from chatapp.compaction.models import Compaction
from chatapp.long_term.actions.tombstones import lift_requested
from chatapp.long_term.selectors.entries import corrected_texts, known_texts, recalled_texts
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.recall.analysis import vocabulary
from memory.long_term.new_sentences import KnownSentences, Learned, learn
from memory.types import Message


def learn_from(
    row: Compaction, summary: str, messages: Sequence[Message], *, first_id: UUID, last_id: UUID
) -> Learned:
    """Return what a summary adds to memory: without sentences that memory has or had before a correction, recalled
    texts, small talk and forgotten sentences.

    The entry of the same span does not count as known, so that a repeated job returns the same.
    """
    user_id = row.conversation.owner_id
    # First, so that sentences the user asks to remember again are not filtered out as forgotten.
    lift_requested(
        user_id, [UUID(message.id) for message in messages if message.role == "user" and message.id]
    )
    own = [("", message.text) for message in messages if message.role == "user"]
    texts = chain(
        known_texts(row, first_id=first_id, last_id=last_id),
        corrected_texts(row),
        recalled_texts(row, partial(KnownSentences, vocabulary, own)),
    )
    known = KnownSentences(vocabulary, texts)
    return learn(summary, messages, known=known, tombstones=tombstones_of(user_id), vocabulary=vocabulary)
