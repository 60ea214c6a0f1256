"""Finds repetitions of a text, through the search index."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.recall.analysis import hash_text, vocabulary
from chatapp.recall.selectors.found_texts import Found
from chatapp.recall.selectors.user_index import UserIndex, open_index
from memory.language.sentences import share_enough, split_sentences
from memory.long_term.quotes import Quotes

LOOKED_AT = 500
PER_WORD = 20


@dataclass(frozen=True, slots=True)
class Repeats:
    """The `quotes` and `rare` words of the texts to forget; `found` are messages that repeat one of the quotes, `alike`
    those that say the same as an entry in other words. Read before anything is locked."""

    quotes: Quotes
    rare: frozenset[str] = frozenset()
    found: Sequence[Found] = ()
    alike: frozenset[UUID] = field(default_factory=frozenset)
    _known: dict[bytes, bool] = field(default_factory=dict, compare=False)

    def may_repeat(self, text: str) -> bool:
        """Return whether a text may repeat the forgotten text. Use it only for texts that name that as a source.
        Results are cached, so that texts checked before locking cost nothing under the lock."""
        digest = hash_text(text)
        known = self._known.get(digest)
        if known is None:
            known = bool(self.rare & vocabulary.rare_words(text)) or self.quotes.are_in(text)
            self._known[digest] = known
        return known


def find_repeats(
    user_id: UUID,
    said: Iterable[str],
    *,
    answered: Iterable[str] = (),
    entries: Iterable[str] = (),
    made_of: Collection[UUID] = (),
) -> Repeats:
    """Find repetitions of the texts that were `said` and `answered`. `entries` is the subset of these texts that memory
    made of messages in the conversations `made_of`."""
    said, answered = list(dict.fromkeys(said)), list(dict.fromkeys(answered))
    quotes = Quotes(said, vocabulary, answered=answered)
    rare = frozenset[str]().union(*map(vocabulary.rare_words, (*said, *answered)))
    index = open_index(user_id)
    holding = index.messages_containing_all(quotes.word_sets(), LOOKED_AT)
    found = [one for one in holding if quotes.are_in(one.text)]
    alike = frozenset(_find_alike(index, entries, made_of)) if made_of else frozenset()
    return Repeats(quotes, rare, found, alike)


def _find_alike(index: UserIndex, entries: Iterable[str], made_of: Collection[UUID]) -> Iterator[UUID]:
    sentences = dict.fromkeys(sentence for text in entries for sentence in split_sentences(text))
    gists = _Gists(map(vocabulary.gist, sentences))
    for one in index.messages_containing(gists.words, PER_WORD, made_of) if gists.words else ():
        if one.message_id and gists.are_in(one.text):
            yield one.message_id


class _Gists:
    """The gists of many sentences, indexed by word, so that a text is compared only with gists that share one."""

    def __init__(self, gists: Iterable[frozenset[str]]) -> None:
        self._sizes: list[int] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for at, gist in enumerate(gists):
            self._sizes.append(len(gist))
            for word in gist:
                self._by_word[word].append(at)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self._by_word)

    def are_in(self, text: str) -> bool:
        """Return whether a sentence of the text says the same as one of these sentences."""
        for said in map(vocabulary.gist, split_sentences(text)):
            shared = Counter(at for word in said for at in self._by_word.get(word, ()))
            if any(share_enough(count, len(said), self._sizes[at]) for at, count in shared.items()):
                return True
        return False


def said_texts(rows: Iterable[Message]) -> tuple[list[str], list[str]]:
    """Return (users' texts, texts of answers and tools) of these messages, without tools that read stored content."""
    said: list[str] = []
    answered: list[str] = []
    for row in rows:
        texts = [message_values.text_of(row.parts), *message_values.results_from_outside(row.parts)]
        (said if row.role == Message.Role.USER else answered).extend(text for text in texts if text)
    return said, answered
