"""Chooses the sentences that a summarised span adds to memory: worth keeping, not known yet, and not forgotten."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.language.sentences import Vocabulary, are_alike, split_sentences, strip_list_mark
from memory.long_term.memorable import memorable_sentences
from memory.long_term.tombstones import Tombstones
from memory.summaries.extractive import find_facts
from memory.types import Message

LEAST_WORDS = 2
MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class Learned:
    """`text` is empty if nothing is new. `repeated` are the sources that already contain some of it."""

    text: str
    repeated: tuple[str, ...] = ()


class KnownSentences:
    """The sentences that memory already contains, each with its source."""

    def __init__(self, vocabulary: Vocabulary, texts: Iterable[tuple[str, str]] = ()) -> None:
        """Index the sentences of `texts`, which are (source, text) pairs."""
        self._vocabulary = vocabulary
        self._sources: list[str] = []
        self._facts: list[frozenset[str]] = []
        self._denials: list[frozenset[str]] = []
        # By word, so that a sentence is compared only with sentences that share a word with it.
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
        """Return the source of a sentence that says all of this one and denies nothing more; None if there is none."""
        words = self._vocabulary.gist(sentence)
        shared = Counter(number for word in words for number in self._by_word.get(word, ()))
        facts = _facts_of(sentence)
        for number, count in shared.items():
            # A word or fact that the known sentence lacks makes this one new: "Rent is 950" after "Rent is 900". So
            # does a denial that this one lacks: "I take the pills" after "I don't take the pills".
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
    """Return the summary's new sentences, followed by new statements of the span, verbatim, as a list.

    Add them to `known`.
    """
    repeated: dict[str, None] = {}

    def is_new(sentence: str) -> bool:
        if len(vocabulary.content_words(sentence)) < LEAST_WORDS or tombstones.cover(sentence):
            return False
        source = known.find(sentence)
        if source is not None:
            repeated[source] = None
            return False
        # Without a source, so that a repetition within the span does not count as one of an entry.
        known.add("", sentence)
        return True

    told = "".join(sentence for sentence in split_sentences(summary) if is_new(sentence)).strip()
    lines = [line for line in memorable_sentences(messages, vocabulary) if is_new(line)]
    listed = "\n".join(f"- {line}" for line in lines[:MAX_LINES])
    return Learned(f"{told}\n\n{listed}".strip(), tuple(source for source in repeated if source))


def add_sentences(text: str, before: str, after: str) -> str:
    """Return an entry's text with the sentences that its summary gained between `before` and `after`. Sentences that
    the summary lost stay."""
    said = {strip_list_mark(sentence) for one in (text, before) for sentence in split_sentences(one)}
    added = [strip_list_mark(sentence) for sentence in split_sentences(after)]
    return "\n".join([text, *(sentence for sentence in added if sentence and sentence not in said)])


def correct_text(text: str, before: str, after: str, vocabulary: Vocabulary) -> str:
    """Return an entry's text after its summary was corrected from `before` to `after`.

    Remove the sentences that only `before` contains, and similar ones with a fact that `after` lacks. Keep everything
    else that was learned from the messages.
    """
    wrong = {strip_list_mark(one) for one in split_sentences(before)}
    wrong -= {strip_list_mark(one) for one in split_sentences(after)}
    gone = _facts_of(before) - _facts_of(after)
    gists = [vocabulary.gist(sentence) for sentence in wrong]

    def is_wrong(sentence: str) -> bool:
        if strip_list_mark(sentence) in wrong:
            return True
        has_gone = not gone.isdisjoint(_facts_of(sentence))
        return has_gone and any(are_alike(vocabulary.gist(sentence), gist) for gist in gists)

    kept = "".join(sentence for sentence in split_sentences(text) if not is_wrong(sentence))
    return add_sentences(kept.strip(), before, after).strip()


def _facts_of(sentence: str) -> frozenset[str]:
    return frozenset(fact.casefold() for fact in find_facts(strip_list_mark(sentence)))
