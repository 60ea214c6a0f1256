"""Chooses the sentences worth remembering: facts and statements, not small talk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.language.languages import QUESTION_MARKS, fold_text, latin_language, stop_words
from memory.language.sentences import Vocabulary, split_sentences, strip_list_mark
from memory.language.small_talk import SMALL_TALK, greets_by_name, is_courtesy
from memory.long_term.memory_requests import read_remember_requests
from memory.summaries.extractive import STRONG_FACT, find_facts
from memory.types import Message

LEAST_WORDS = 2
MAX_CHARS = 400
"""Longer sentences are left to the summary."""

_DAYS = frozenset(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
_PASSING = re.compile(
    r"\b(?:today|tonight|right now|this (?:morning|afternoon|evening|week)|just now|lol|haha|heute|aujourd'hui|hoy)\b",
    re.IGNORECASE,
)
_ONESELF = """
    i i'm i've i'd i'll my we we're we've our ich mein meine meiner meinem meinen wir unser unsere je j mon ma mes nous
    notre nos ik mijn wij onze ons jag min mitt mina jeg vi always never immer nie toujours jamais altijd nooit
"""
_OF_ONESELF = frozenset(_ONESELF.split())
"""Words that occur in any statement about oneself, or lasting wish, in languages that never leave out the subject."""
_SAYS_WHO = frozenset(("en", "de", "fr", "nl", "sv", "da", "no"))
_WORD = re.compile(r"[^\W\d_]+(?:['’](?:m|ve|d|ll|re)\b)?")


def memorable_sentences(messages: Sequence[Message], vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the sentences worth remembering in their order, each once."""
    seen: set[str] = set()
    for message in messages:
        for sentence in split_sentences(message.text):
            bare = strip_list_mark(sentence)
            if bare not in seen and is_memorable(bare, message.role, vocabulary):
                seen.add(bare)
                yield bare


def is_memorable(sentence: str, role: str, vocabulary: Vocabulary) -> bool:
    """Return whether a sentence is worth remembering: what users say about themselves and their world; from other roles
    only identifiers, numbers and dates."""
    if len(sentence) > MAX_CHARS or sentence.endswith(QUESTION_MARKS):
        return False
    if len(vocabulary.content_words(sentence)) < LEAST_WORDS:
        return False
    # Days of the week are capitalised, but are no names.
    facts = {fact: weight for fact, weight in find_facts(sentence).items() if fact not in _DAYS}
    if any(weight >= STRONG_FACT for weight in facts.values()):
        return True
    if role != "user" or _PASSING.search(sentence):
        return False
    return bool(facts) or _is_of_oneself(sentence) or any(read_remember_requests(sentence))


def _is_of_oneself(sentence: str) -> bool:
    """Return whether the speaker talks about themselves, in more than the commonest words. In languages that may leave
    out the subject, accept everything but courtesies."""
    words = [word.replace("’", "'") for word in _WORD.findall(sentence.casefold())]
    folded = [fold_text(word) for word in words]
    language = latin_language(folded)
    if not any(map(str.isascii, words)) or language not in _SAYS_WHO:
        return not (is_courtesy(sentence) or greets_by_name(sentence))
    others = {*folded} - stop_words(language) - SMALL_TALK - _OF_ONESELF
    return bool(others) and not _OF_ONESELF.isdisjoint(words)
