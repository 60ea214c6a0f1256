"""Summarises without a model: chooses sentences that contain facts, verbatim and in order.

A fact cannot be guessed: an identifier, a number, a date, an address, a name. A sentence counts for the facts that no
better sentence has, and a little for its words; those with most value per token are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from memory.language.languages import CAPITAL, QUESTION_MARKS, UNSPACED_RUN
from memory.language.neutral_text import names_speaker, quote_speaker_lines
from memory.language.sentences import Vocabulary, split_sentences
from memory.language.terms import Analyzer
from memory.summaries.summary import EARLIER_TRUNCATED, bounded_summary
from memory.tokens import estimate_text
from memory.truncate import level, split_whole, whole_end, whole_start
from memory.types import Message, TextPart, ToolCallPart, ToolResultPart

SENTENCE_CHARS = 320
LEAST_MISSING_TOKENS = 24
PREVIOUS_SHARE = 2 / 3
"""Share of the room that the previous summary may keep if both need more."""
STRONG_FACT = 2.0
"""Facts of at least this weight are identifiers, addresses or numbers."""
WORD = 0.3
"""The weight of a word that is neither small talk nor in everyday use. A pair of characters in a script without spaces
has a third."""
FRAME_TOKENS = 12
"""Added to the tokens of each sentence. Otherwise the shortest have most value per token, and they say "Great!"."""
MISSING_LEAD = "Word for word:"

_WORD = "A-Za-z0-9_"
_MARKS = (
    r"#\d+",
    rf"(?=[{_WORD}]*\d)(?=[{_WORD}]*[A-Za-z])[{_WORD}][{_WORD}.-]*[{_WORD}]",  # 5pm, v2.1.3, 3f9a-77
    rf"[A-Za-z]+(?:[_-][{_WORD}]{{1,64}}){{0,20}}_[{_WORD}]+",  # snake_case
    rf"[A-Za-z]{{2,}}-\d[{_WORD}-]*",  # INV-2041
    rf"[a-z]+[A-Z][{_WORD}]*",  # camelCase
)
_NUMBERS = (
    r"\d{1,2}\.?[ ][A-Z][a-z]{2,8}(?:,?[ ]\d{4})?\b",  # 18 October 2026
    r"[$€£¥₩₹]?\d[\d.,:/-]*\d(?:\s?%)?",
    r"[$€£¥₩₹]?\d+(?:\s?%)?",
    r"[一二三四五六七八九十百千万亿億零〇两兩]{2,}[年月日时時分个個人元円点條条件名]?",
    r"[일이삼사오육칠팔구십백천만]{2,}[월일시분개명원]",
)
_QUOTES = (
    r'"[^"\n]{2,80}"',
    "“[^”\n]{2,80}”",
    "«[^»\n]{2,80}»",
    "「[^」\n]{1,80}」",
    "『[^』\n]{1,80}』",
    "《[^》\n]{1,80}》",
)
# Not after a colon, where a word begins a sentence, e.g. after "Ann: ".
_NAMES = (rf"(?<=[\w,;)][ ])[{CAPITAL}][\w'’-]*\w(?:\s[{CAPITAL}][\w'’-]*\w)*", r"[A-Z]{2,}\b")
# The text before a mark is bounded, and so are repeated parts: otherwise a ruler is searched again from each of its
# dots.
_KINDS: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("link", 3.0, (r"https?://[^\s<>\"')\]]+", rf"[{_WORD}.+-]{{1,64}}@[{_WORD}-]+\.[{_WORD}.-]+[{_WORD}]")),
    (
        "code",
        2.0,
        (r"`[^`\n]{1,80}`", rf"(?:[A-Za-z]:)?(?:[{_WORD}.~-]{{0,255}}/){{1,40}}[{_WORD}.-]*[{_WORD}]"),
    ),
    ("mark", 3.0, _MARKS),
    ("number", 2.0, _NUMBERS),
    ("quote", 1.5, _QUOTES),
    ("name", 1.5, _NAMES),
)
_FACT = re.compile(
    # A fact begins where a word does; otherwise each letter of a word is tried.
    rf"(?<![{_WORD}])(?:"
    + "|".join(f"(?P<{kind}>{'|'.join(patterns)})" for kind, _, patterns in _KINDS)
    + ")"
)
_WEIGHTS = {kind: weight for kind, weight, _ in _KINDS}
_vocabulary = Vocabulary(Analyzer())
_NOTHING = frozenset({"0", "1", "2", "I", "OK", "II", "A"})


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """Bounds the time: of more messages a sample is read, and long ones are shortened to `chars` in total."""

    messages: int
    chars: int


THOROUGH = SourceLimits(400, 50_000)
QUICK = SourceLimits(80, 4_500)
"""For an extract that a question waits for."""


@dataclass(slots=True)
class _Sentence:
    order: int
    speaker: str
    text: str
    facts: tuple[tuple[str, float], ...]
    words: frozenset[str]
    base: float
    tokens: int

    @property
    def density(self) -> tuple[float, int]:
        return self.value(sum(weight for _, weight in self.facts), self.words), self.order

    def value(self, facts: float, words: Set[str]) -> float:
        """Return the value per token with these facts and words; without any, the speaker does not add to it."""
        weight = facts + WORD * sum(1 / 3 if UNSPACED_RUN.match(word) else 1 for word in words)
        base = self.base if weight else min(self.base, 0.0)
        return (weight + base) / (self.tokens + FRAME_TOKENS)


def write_extract(
    previous: str, messages: Sequence[Message], max_tokens: int, limits: SourceLimits = THOROUGH
) -> str:
    """Return the previous summary and the facts of these messages in at most `max_tokens`; the truncation mark if
    nothing else fits."""
    kept = bounded_summary(previous, int(max_tokens * PREVIOUS_SHARE) if messages else max_tokens)
    room = max_tokens - estimate_text(kept) - 2
    extract = extract_summary(messages, room, limits) if messages else ""
    return f"{kept}\n\n{extract}".strip() or EARLIER_TRUNCATED


def extract_summary(messages: Sequence[Message], max_tokens: int, limits: SourceLimits = THOROUGH) -> str:
    """Return the sentences that say most in at most `max_tokens`, one per line, with their speakers."""
    chosen = _choose(_sentences(messages, limits), max_tokens)
    while chosen and estimate_text(_lines_of(chosen)) > max_tokens:  # with the names of the speakers
        chosen.pop()
    return _lines_of(chosen)


def _lines_of(sentences: Sequence[_Sentence]) -> str:
    lines: list[str] = []
    speaker = ""
    for sentence in sorted(sentences, key=lambda sentence: sentence.order):
        # Repeat the speaker before a text that looks like somebody else's line.
        goes_on = sentence.speaker == speaker and not names_speaker(sentence.text)
        lines.append(
            quote_speaker_lines(sentence.text if goes_on else f"{sentence.speaker}: {sentence.text}")
        )
        speaker = sentence.speaker
    return "\n".join(lines)


def extract_missing(messages: Sequence[Message], previous: str, summary: str, max_tokens: int) -> str:
    """Return sentences of the messages, and lines of the previous summary, whose facts the new summary lacks."""
    if max_tokens < LEAST_MISSING_TOKENS:
        return ""
    # The previous summary is a source as well: the new one may lack its lines.
    before = [Message("assistant", (TextPart(previous),), 0)] if previous else []
    sentences = _sentences([*before, *messages])
    told = {fact for sentence in sentences for fact, _ in sentence.facts if _is_told(fact, summary)}
    chosen = _choose(sentences, max_tokens - 8, told)
    chosen.sort(key=lambda sentence: sentence.order)
    # A line from an earlier list of this kind already has a dash.
    lines = [f"- {sentence.text.removeprefix('- ')}" for sentence in chosen]
    return "\n".join([MISSING_LEAD, *lines]) if lines else ""


def _is_told(fact: str, summary: str) -> bool:
    """Return whether the summary contains the fact as a whole: 47 is not in INV-4711."""
    border = rf"(?<![{_WORD}])(?<!\d[.,])" if fact[0].isalnum() else ""
    whole = rf"{border}{re.escape(fact)}(?![{_WORD}]|[.,]\d)"
    # `in` first: most facts are missing, and their patterns need not be compiled.
    return fact in summary and re.search(whole, summary) is not None


def find_facts(text: str) -> dict[str, float]:
    """Return the facts of a text, verbatim, each with its weight, in order of appearance."""
    found: dict[str, float] = {}
    for match in _FACT.finditer(text):
        fact = match.group().strip(" ,;:.")
        if fact and fact not in _NOTHING:
            found[fact] = max(found.get(fact, 0.0), _WEIGHTS[match.lastgroup or "name"])
    return found


def _sentences(messages: Sequence[Message], limits: SourceLimits = THOROUGH) -> list[_Sentence]:
    messages = _sample(messages, limits.messages)
    texts = [_source_text(message) for message in messages]
    cap = level([len(text) for text in texts], limits.chars)
    found: list[_Sentence] = []
    seen: set[str] = set()
    for message, text in zip(messages, texts, strict=True):
        for piece in _split_sentences(_ends(text, cap)):
            if piece not in seen:
                seen.add(piece)
                found.append(_weigh(len(found), message, piece))
    return found


def _sample(messages: Sequence[Message], most_messages: int) -> Sequence[Message]:
    """Return at most this many messages: half of them the newest, the rest spread evenly over the older ones."""
    if len(messages) <= most_messages:
        return messages
    half = most_messages // 2
    older, newest = messages[:-half], messages[-half:]
    return [*(older[at * len(older) // half] for at in range(half)), *newest]


def _ends(text: str, cap: int) -> str:
    """Return whole sentences from both ends of a text that is too long; incomplete ones only if none is whole."""
    if len(text) <= cap:
        return text
    # Where both ends meet, the last sentence of the beginning and the first of the end are incomplete.
    begin = split_sentences(text[: whole_end(text, cap - cap // 3)])
    end = split_sentences(text[whole_start(text, len(text) - cap // 3) :])
    return "".join([*begin[:-1], "\n", *end[1:]]).strip() or "".join([*begin, "\n", *end])


def _source_text(message: Message) -> str:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, (TextPart, ToolResultPart)):
            texts.append(part.text)
        elif isinstance(part, ToolCallPart):
            texts.append(f"{part.name} {part.arguments}")
    return "\n".join(texts)


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in split_sentences(text):
        yield from (piece for piece in split_whole(sentence.strip(), SENTENCE_CHARS) if len(piece) > 1)


def _weigh(order: int, message: Message, text: str) -> _Sentence:
    facts = tuple(find_facts(text).items())
    base = {"user": 1.0, "assistant": 0.2}.get(message.role, 0.0)
    if text.endswith(QUESTION_MARKS):
        base -= 0.5
    words = _vocabulary.rare_words(text)
    return _Sentence(order, message.role.capitalize(), text, facts, words, base, estimate_text(text) + 1)


def _rank(
    sentences: Sequence[_Sentence], told: Set[str] = frozenset()
) -> list[tuple[float, float, _Sentence]]:
    """Return (value per token, value of facts that no better sentence has, sentence), best first.

    A fact or word counts for the densest sentence that has it. A fact that is already `told` does not count.
    """
    known, used = set(told), set[str]()
    ranked: list[tuple[float, float, _Sentence]] = []
    for sentence in sorted(sentences, key=lambda sentence: sentence.density, reverse=True):
        fresh = sum(weight for fact, weight in sentence.facts if fact not in known)
        ranked.append((sentence.value(fresh, sentence.words - used), fresh, sentence))
        known.update(fact for fact, _ in sentence.facts)
        used |= sentence.words
    # Of equal sentences the later comes first, because it is newer.
    ranked.sort(key=lambda entry: (-entry[0], -entry[2].order))
    return ranked


def _choose(sentences: Sequence[_Sentence], max_tokens: int, told: Set[str] | None = None) -> list[_Sentence]:
    """Return the sentences that fit, best first. With `told`, only those that add a fact."""
    chosen: list[_Sentence] = []
    room = max_tokens
    for _, fresh, sentence in _rank(sentences, told or frozenset()):
        cost = sentence.tokens + 1
        if cost <= room and (told is None or fresh):
            chosen.append(sentence)
            room -= cost
        if room < 8:
            break
    return chosen
