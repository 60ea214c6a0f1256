"""Chooses what a summarised span adds to memory: worth keeping, not known already, and not forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.extractive import find_facts
from memory.memorable import memorable_sentences
from memory.sentences import Vocabulary, are_alike, bare_sentence, split_sentences
from memory.tombstones import Tombstones
from memory.types import Message

LEAST_WORDS = 2
MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class Learned:
    """`text` is empty where there is nothing new. `repeated` are the sources that have some of it already."""

    text: str
    repeated: tuple[str, ...] = ()


class KnownSentences:
    """The sentences that memory has already, each with its source."""

    def __init__(self, vocabulary: Vocabulary, texts: Iterable[tuple[str, str]] = ()) -> None:
        """Index the sentences of `texts`, pairs of a source and its text."""
        self._vocabulary = vocabulary
        self._sources: list[str] = []
        self._facts: list[frozenset[str]] = []
        self._denials: list[frozenset[str]] = []
        # By word, so that a sentence is compared only with those that share one with it.
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for source, text in texts:
            for sentence in split_sentences(text):
                self.add(source, sentence)

    def add(self, source: str, sentence: str) -> None:
        words = self._vocabulary.gist(sentence)
        for word in words:
            self._by_word[word].append(len(self._sources))
        self._sources.append(source)
        self._facts.append(_facts_of(sentence))
        self._denials.append(self._vocabulary.denials_in(words))

    def find(self, sentence: str) -> str | None:
        """Return the source that says all of the sentence already, and denies no more; None where none does."""
        words = self._vocabulary.gist(sentence)
        shared: dict[int, int] = defaultdict(int)
        for word in words:
            for number in self._by_word.get(word, ()):
                shared[number] += 1
        facts = _facts_of(sentence)
        for number, count in shared.items():
            # A word or a fact that the other lacks makes it new, however alike they are: "Rent is 950" after "Rent is
            # 900". A denial that it lacks itself does, too: "I take the pills" after "I don't take the pills".
            says_all = count == len(words) and facts <= self._facts[number]
            if says_all and self._denials[number] <= words:
                return self._sources[number]
        return None


def learn(
    summary: str,
    messages: Sequence[Message],
    *,
    known: KnownSentences,
    tombstones: Tombstones,
    vocabulary: Vocabulary,
) -> Learned:
    """Return the summary's new sentences, then new statements of the span word for word, as a list.

    `known` is extended by them.
    """
    repeated: dict[str, None] = {}

    def is_new(sentence: str) -> bool:
        if len(vocabulary.telling_words(sentence)) < LEAST_WORDS or tombstones.cover(sentence):
            return False
        source = known.find(sentence)
        if source is not None:
            repeated[source] = None
            return False
        # Without a source: what the span says twice is learned once, and repeats no entry.
        known.add("", sentence)
        return True

    told = "".join(sentence for sentence in split_sentences(summary) if is_new(sentence)).strip()
    lines = [line for line in memorable_sentences(messages, vocabulary) if is_new(line)]
    listed = "\n".join(f"- {line}" for line in lines[:MAX_LINES])
    return Learned(f"{told}\n\n{listed}".strip(), tuple(source for source in repeated if source))


def add_sentences(text: str, before: str, after: str) -> str:
    """Return an entry's text with what its summary says since it was edited. What the summary no longer
    says stays."""
    said = {bare_sentence(sentence) for one in (text, before) for sentence in split_sentences(one)}
    added = [bare_sentence(sentence) for sentence in split_sentences(after)]
    return "\n".join([text, *(sentence for sentence in added if sentence and sentence not in said)])


def correct_text(text: str, before: str, after: str, vocabulary: Vocabulary) -> str:
    """Return an entry's text after its summary was corrected from `before` to `after`.

    What only the former summary said goes, and lines like it with a fact that the new one nowhere has. What else was
    learned of the messages stays.
    """
    wrong = {bare_sentence(one) for one in split_sentences(before)}
    wrong -= {bare_sentence(one) for one in split_sentences(after)}
    gone = _facts_of(before) - _facts_of(after)
    gists = [vocabulary.gist(sentence) for sentence in wrong]

    def is_wrong(sentence: str) -> bool:
        if bare_sentence(sentence) in wrong:
            return True
        has_gone = not gone.isdisjoint(_facts_of(sentence))
        return has_gone and any(are_alike(vocabulary.gist(sentence), gist) for gist in gists)

    kept = "".join(sentence for sentence in split_sentences(text) if not is_wrong(sentence))
    return add_sentences(kept.strip(), before, after).strip()


def _facts_of(sentence: str) -> frozenset[str]:
    return frozenset(fact.casefold() for fact in find_facts(bare_sentence(sentence)))
