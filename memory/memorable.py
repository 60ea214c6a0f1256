"""Chooses the sentences worth remembering: facts and statements, not small talk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.extractive import STRONG_FACT, find_facts
from memory.sentences import Vocabulary, bare_sentence, split_sentences
from memory.types import Message

LEAST_WORDS = 2
MAX_CHARS = 400
"""A longer sentence is left to the summary."""

_DAYS = frozenset(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
_PASSING = re.compile(
    r"\b(?:today|tonight|right now|this (?:morning|afternoon|evening|week)|just now|lol|haha|heute|aujourd'hui|hoy)\b",
    re.IGNORECASE,
)
_VERBS = (
    "live|lived|work|worked|moved|move|own|speak|study|studied|play|prefer|love|hate|like|dislike|enjoy|use|drive|"
    "bought|plan|have|need|want|run|teach|manage|collect|graduated|married|adopted|started|stopped|quit|joined|changed|"
    "switched|grew|weigh|earn|eat|drink|avoid|take|keep|call|go by"
)
_STATES = (
    "a|an|the|not|no longer|now|from|in|allergic|born|married|single|divorced|engaged|vegetarian|vegan|called|named|"
    r"based|living|working|learning|moving|planning|afraid|diabetic|pregnant|retired|left-handed|\d+"
)
_MODALS = "also |now |really |always |never |usually |just |recently |no longer |don't |do not |have |will |would |can "
_IS = "is|are|was|were|has|have|lives?|works?|will|'s|can|called|named|expires?|starts?|ends?"
_PERSONAL = re.compile(
    rf"\b(?:my|our)\b.{{2,}}?\b(?:{_IS})\b"
    rf"|\b(?:I|we)(?:'m|'re| am| are| was| were)\s+(?:also |still |now )?(?:{_STATES})\b"
    rf"|\b(?:I|we)(?:'ve|'d|'ll)?\s+(?:{_MODALS})*(?:{_VERBS})\b"
    r"|\b(?:my|our) (?:[\w'-]+ ){1,3}?[a-z]{3,}(?:s|ed)\b"
    r"|\b(?:I|we) (?:can't|cannot|can not|couldn't) (?:stand|bear|eat|drink|have|use|work|come|sleep|walk|drive)\b"
    r"|\btold (?:me|us) to\b|\bplease,? (?:always|never)\b"
    r"|\b(?:remember|note|keep in mind|bear in mind) (?:that|this)\b|\bcall me\b"
    r"|\bich (?:heiße|heisse|wohne|arbeite|bin|habe|mag|liebe|hasse|bevorzuge|esse|trinke|ziehe|spiele|spreche)\b"
    r"|\b(?:mein|meine|meiner|unser|unsere)\b.+\b(?:ist|heißt|sind|war|hat|wohnt)\b"
    r"|\bje (?:m'appelle|suis|vis|travaille|préfère|déteste|parle|joue)\b|\bj'(?:habite|aime|adore|ai)\b"
    r"|\b(?:mon|ma|mes|notre)\b.+\b(?:est|s'appelle|sont|a)\b"
    r"|\b(?:me llamo|vivo en|trabajo|soy|tengo|prefiero|odio|me gusta|hablo)\b|\bmi\b.+\b(?:es|se llama|son|tiene)\b"
    r"|我(?:叫|是|住|喜欢|不喜欢|在|有|的)|私(?:は|の)|僕(?:は|の)|제 |저는|나는",
    re.IGNORECASE,
)
_UNCHECKED_SCRIPTS = re.compile("[\u0370-\u1cff]{2}")
"""Greek, Cyrillic, Hebrew, Arabic, the scripts of India and more: in these we cannot tell small talk, and keep it."""


def memorable_sentences(messages: Sequence[Message], vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the sentences worth remembering in their order, each once."""
    seen: set[str] = set()
    for message in messages:
        for sentence in split_sentences(message.text):
            bare = bare_sentence(sentence)
            if bare not in seen and is_memorable(bare, message.role, vocabulary):
                seen.add(bare)
                yield bare


def is_memorable(sentence: str, role: str, vocabulary: Vocabulary) -> bool:
    """Return whether a sentence is worth remembering: what users say of themselves and their world; of
    what others tell them only identifiers, numbers and dates."""
    if len(sentence) > MAX_CHARS or sentence.endswith(("?", "？", "؟")):
        return False
    if len(vocabulary.telling_words(sentence)) < LEAST_WORDS:
        return False
    facts = {fact: weight for fact, weight in find_facts(sentence).items() if fact not in _DAYS}
    if any(weight >= STRONG_FACT for weight in facts.values()):
        return True
    if role != "user" or _PASSING.search(sentence):
        return False
    return bool(facts) or bool(_PERSONAL.search(sentence)) or bool(_UNCHECKED_SCRIPTS.search(sentence))
