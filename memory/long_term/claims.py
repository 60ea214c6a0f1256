"""Finds facts that change: statements that give one thing one value, so that a newer one replaces an older one.

Careful rather than complete: statements that may be about different things do not replace each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memory.language.languages import CAPITAL, QUESTION_MARKS
from memory.language.sentences import Vocabulary, split_sentences
from memory.long_term import claim_languages as languages
from memory.long_term.claim_structure import (
    LATIN_SCRIPT,
    SCRIPTS,
    Statement,
    read_residence,
    read_statement,
    script_of,
    scripts_in,
    without_denial,
    without_new,
    without_now,
)

Key = tuple[str, ...]

_WORD = re.compile(r"\w+")
_ADVERBS = r"(?:now |just |recently |currently |still |actually |finally |no longer |soon )*"
# No past or denied forms: they say nothing about today and end nothing. `read_statement` reads them.
_HAVE = r"\b(?:I|we)(?:'m|'ve|'re|'ll| am| have| are| will)?\s+"
_HAVE_LONG = r"\b(?:I|we)(?:'ve| have)\s+"
_UNTIL_NOW = r"(?=[^.,;:!?\n]{1,80}\s(?:since|for)\b)"
_VALUE = languages.VALUE
_PLACE = rf"(?:the\s+)?(?-i:[{CAPITAL}])"
"""A place has a name after "moved to"; "the next exercise" is no place."""
_EMPLOYER = r"(?!\d|(?:night|noon|home|hours|now|(?:the|this) moment)\b)"
"""Durations and times are no employer: "for three hours", "at night"."""
_FIXED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "residence",
            rf"{_HAVE}{_ADVERBS}(?:(?:live|living|based)\s+(?:in|at|near)|"
            rf"(?:moved|moving|relocated)\s+(?:back )?(?:in|at|near|to(?=\s+{_PLACE})))\s+{_VALUE}",
        ),
        (
            "residence",
            rf"{_HAVE_LONG}{_ADVERBS}(?:lived|been living)\s+(?:in|at|near)\s+{_UNTIL_NOW}{_VALUE}",
        ),
        (
            "employer",
            rf"{_HAVE}{_ADVERBS}(?:(?:work|working|started|got a job)\s+(?:at|for)|changed jobs?\s+(?:at|for|to))"
            rf"\s+{_EMPLOYER}{_VALUE}",
        ),
        ("employer", rf"{_HAVE_LONG}{_ADVERBS}(?:worked|been working)\s+(?:at|for)\s+{_UNTIL_NOW}{_VALUE}"),
        (
            "age",
            rf"\bI(?:'m| am)\s+{_ADVERBS}(?P<value>\d{{1,3}})(?: years old)?(?=\s*(?:[.,;!?]|$|and\b|now\b))",
        ),
        ("status", rf"{_HAVE}{_ADVERBS}(?:got )?(?P<value>single|married|divorced|engaged|widowed)\b"),
    )
)
_SPEAKERS = frozenset(("i", "we"))
_SPEAKING_WORDS = "ich je j vivo ya me trabajo tengo estoy soy abito mi moro trabalho mudei ik"
_SPEAKERS_ABROAD = frozenset(_SPEAKING_WORDS.split())
_TURKISH_END = "yorum"
"""Every text that the patterns in Latin letters match contains this or one of `_SPEAKERS_ABROAD`."""
# By the letters in the pattern. The ranges of `script_of` exclude punctuation, which is in every pattern.
_BY_SCRIPT = {
    script: tuple(each for each in languages.FIXED if script_of(each[1].pattern) == script)
    for script in SCRIPTS
}
_CHANGED = (
    r"(?:(?:has been |have been |was |were |is |are |has |got |will be )?(?:now )?"
    r"(?:moved|changed|renamed|postponed|rescheduled|switched|set|raised|lowered|updated|delayed|pushed|shifted|put|brought|"
    r"extended|increased|reduced|cut)\s+(?:(?:back|forward|off|up|down)\s+)?(?:from\s+[^.,;!?\n]{1,40}?\s+)?(?:to|for|until))"
)
_STATED = r"(?:(?P<past>was|were)|is|are|will be|became|has become|costs?|starts?|takes place)"
_SUBJECT = re.compile(
    rf"\b(?P<owner>my|our|the)\s+(?P<subject>[\w'’-]+(?:\s[\w'’-]+){{0,4}}?)\s+(?:(?P<changed>{_CHANGED})|{_STATED})"
    rf"\s+(?P<adverb>(?:now|currently|actually)\s+)?{_VALUE}",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\b(?:now|no longer|not any ?more|any ?more|instead|from now on|since then|correction|actually)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\b(?:also|another|one of|too|as well|sometimes|each|every)\b", re.IGNORECASE)
_TAIL = re.compile(
    r"\s+(?:with|since|and|but|because|which|where|who|as|now|these days|right now|until|so|though|instead|"
    r"any ?more|any longer|for)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_WHEN = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d{1,2}[:.]\d\d|\b\d{1,2}\s?(?:am|pm)\b|\d{4}-\d\d|"
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december|tomorrow)\b",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"\"[^\"]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|『[^『』]*』")
_QUOTED = re.compile(
    r"[\"“„«「『]|\b(?:wrote|writes|said|says|told|tells|texted|replied|schrieb|schreibt|sagte|sagt|écrit|dit|escribió|dijo|"
    r"scritto|scrive|detto|dice|escreveu|disse|schreef|zei|написала?|сказала?|كتبت?|قالت?|लिखा|कहा|yazdı|dedi)(?!\w)"
    r"[^:]{0,40}:|(?:写道?|说|寫道?|說|書い\w*|言っ\w*|썼\w*|말했\w*)[^:：]{0,10}[:：]",
    re.IGNORECASE,
)
"""Text before the words of somebody else: who says so, or an open quotation mark."""
MOST_CHARS = 2_000
"""A longer sentence is a table, a log or a file, and each pattern would search all of it."""
_NO_VALUE = re.compile(r"^(?:called|named|not)\b", re.IGNORECASE)
"""First words of a value that may hold beside another one, or that is denied."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`text[start:end]` says that `key` has `value`. `replaces`: earlier values of the key are over.

    `is_denied`: the key does not have this value any more. Only this value is over.
    """

    key: Key
    value: Key
    replaces: bool
    start: int
    end: int
    is_denied: bool = False


def find_claims(text: str, vocabulary: Vocabulary) -> Iterator[Claim]:
    """Yield the first claim of each sentence; questions make none. A claim about "my sister Ann" is also made about
    Ann, because later sentences may call her so."""
    start = 0
    before = ""
    for sentence in split_sentences(text):
        if said := _read(sentence, before, vocabulary):
            end = start + len(sentence.rstrip())
            yield Claim(said.key, said.value, said.replaces, start, end, said.is_denied)
            if said.named:
                # "Ann" alone may be somebody else, unlike "my sister Ann", so this claim replaces nothing.
                yield Claim(said.named, said.value, False, start, end, said.is_denied)
        start += len(sentence)
        before = sentence


class _Said(NamedTuple):
    key: Key
    value: Key
    replaces: bool
    said: str
    """The value as it was said."""
    named: Key = ()
    """The key of the same person by name alone."""
    is_denied: bool = False


def _read(sentence: str, before: str, vocabulary: Vocabulary) -> _Said | None:
    if (
        len(sentence) > MOST_CHARS
        or sentence.rstrip().endswith(QUESTION_MARKS)
        or _SEVERAL.search(sentence)
        or languages.SEVERAL.search(sentence)
    ):
        return None
    sentence, is_new = without_new(sentence)
    if (said := _read_plain(sentence, before, vocabulary, is_new=is_new)) is None:
        return None
    is_denied = _is_denied(sentence, said.said)
    return said._replace(is_denied=is_denied, replaces=said.replaces and not is_denied)


def _read_plain(sentence: str, before: str, vocabulary: Vocabulary, *, is_new: bool) -> _Said | None:
    """Return what the sentence says without its denial."""
    plain, _ = without_now(sentence)
    for name, pattern in _fixed_for(plain):
        match = pattern.search(plain)
        if match is not None and _QUOTED.search(_QUOTE.sub("", plain[: match.start()])):
            return None
        # A value that never held ends nothing; one that holds no longer ends an earlier one.
        if match is not None and (
            _is_denied(sentence, match["value"]) or not languages.NOT_SO.match(plain, match.end())
        ):
            value = _value_of(match["value"], vocabulary)
            return _Said((name,), value, True, match["value"]) if value else None
    is_changed = is_new or _MARKED.search(sentence) is not None
    affirmed = without_denial(sentence)
    return (
        _read_subject(affirmed, vocabulary, is_changed=is_changed)
        or _as_claim(read_residence(sentence, before), vocabulary, is_changed=is_changed)
        or _read_subject_abroad(affirmed, vocabulary)
        or _as_claim(read_statement(sentence, before), vocabulary, is_changed=is_changed)
    )


def _fixed_for(sentence: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns that can match a sentence: by its scripts, and in Latin letters by words of the speaker."""
    lowered = sentence.lower()
    words = _WORD.findall(lowered)
    if not _SPEAKERS.isdisjoint(words):
        yield from _FIXED
    for script in scripts_in(sentence):
        is_spoken = _TURKISH_END in lowered or not _SPEAKERS_ABROAD.isdisjoint(words)
        if script != LATIN_SCRIPT or is_spoken:
            yield from _BY_SCRIPT[script]


def _is_denied(sentence: str, value: str) -> bool:
    """Return whether the clause with this value says that it holds no longer. Without such a clause, check the
    sentence."""
    plain = _without_tail(value)
    clauses = [clause for clause in languages.CLAUSES.split(sentence) if plain.strip() in clause] or [
        sentence
    ]
    return any(without_denial(clause) != clause for clause in clauses)


def _read_subject(sentence: str, vocabulary: Vocabulary, *, is_changed: bool) -> _Said | None:
    match = _SUBJECT.search(sentence)
    if match is None or _NO_VALUE.match(match["value"]):
        return None
    subject = tuple(sorted(vocabulary.content_words(match["subject"])))
    value = _value_of(match["value"], vocabulary)
    if not subject or not value:
        return None
    # "Our" and "my" share one key.
    owner = "the" if match["owner"].lower() == "the" else "my"
    kind = _kind_of(match["value"])
    # The key of `read_residence`, because "my sister moved to Rome" and "my sister lives in Rome" state the same fact.
    if kind in ("what", "where") and "moved" in (match["changed"] or "").lower():
        return _Said(("of", *subject, "residence"), value, True, match["value"])
    # "The" may mean another thing each time, so it replaces only if a word says that something changed. A past value
    # ends no present one, and "now" after it may belong to something else: "My boss was Ann, now it is Tom".
    says_change = match["adverb"] is not None if match["past"] else owner == "my" or is_changed
    replaces = match["changed"] is not None or says_change
    return _Said((owner, *subject, kind), value, replaces, match["value"])


def _read_subject_abroad(sentence: str, vocabulary: Vocabulary) -> _Said | None:
    match = languages.SUBJECT.search(sentence)
    if match is None or languages.NO_VALUE.match(match["value"]):
        return None
    subject = tuple(sorted(vocabulary.content_words(match["subject"])))
    plain = languages.TAIL.sub("", match["value"])
    value = _value_of(plain, vocabulary)
    replaces = match["past"] is None or match["adverb"] is not None
    return _Said(("my", *subject, _kind_of(plain)), value, replaces, plain) if subject and value else None


def _as_claim(said: Statement | None, vocabulary: Vocabulary, *, is_changed: bool) -> _Said | None:
    if said is None:
        return None
    key = _key_of(said.subject, said.verb, vocabulary)
    value = _value_of(said.value, vocabulary)
    if not key or not value:
        return None
    return _Said(key, value, said.is_now or is_changed, said.value, _key_of(said.name, said.verb, vocabulary))


def _key_of(subject: str, verb: str, vocabulary: Vocabulary) -> Key:
    words = vocabulary.content_words(subject) or frozenset(subject.casefold().split())
    return ("of", *sorted(words), verb) if words else ()


def _value_of(value: str, vocabulary: Vocabulary) -> Key:
    plain = _without_tail(value)
    words = vocabulary.content_words(plain) or frozenset(plain.casefold().split())
    return tuple(sorted(words))


def _without_tail(value: str) -> str:
    return languages.TAIL.sub("", _TAIL.sub("", value))


def _kind_of(value: str) -> str:
    """Return the kind of a value. Only values of one kind replace each other: a sister may be a nurse, and live in
    Oslo."""
    if _WHEN.search(value):
        return "when"
    first = value.split()[0].lower() if value.split() else ""
    if first in {"a", "an"}:
        return "role"
    if first in {"in", "at", "near", "from", "on"}:
        return "where"
    return "number" if any(letter.isdigit() for letter in value) else "what"
