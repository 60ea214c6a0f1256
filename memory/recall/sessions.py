"""Detects a question about the first or the last conversation, and texts that mention their speaker."""

from __future__ import annotations

import re
from itertools import product
from typing import Literal

from memory.language.languages import UNSPACED_RUN, fold_text

Session = Literal["first", "last"]

_FIRST = """
    first erste[nrs]? zuerst premi[a-z]+ prim[a-z]+ eerste ilk перв[а-я]+ أول الأولى पहल[^ ]* 最初 第一次 最开始 初めて
    はじめて 처음 첫
"""
_LAST = """
    last previous letzte[nrs]? zuletzt derni[a-z]+ ultim[ao] pasada passata passada vorige laatste son geçen прошл[а-я]+
    последн[а-я]+ آخر الماضية الأخيرة पिछल[^ ]* 上次 上一次 前回 最後 지난번 마지막
"""
_TALK = """
    conversa[a-z]* discuss[a-z]* chat(?:s|ted|ting)? talk[a-z]* spoke gesprach[a-z]* unterhalt[a-z]+ gesprochen
    besprochen sprachen parle[rz]? parla(?:to|re|mmo) habl[a-z]+ charla[a-z]* fal(?:a|ei|ou|ado|ar|amos)
    gespre[kc][a-z]* spraken hadden(?=.we.het) sohbet[a-z]* konus[a-z]+ разгов[а-я]+ бесед[а-я]+ говор[а-я]+ محادثة
    محادثتنا تحدثنا حديثنا बातचीत बात 聊 对话 谈 話し 会話 대화 이야기 얘기
"""
_ALONE = """
    i my me ich mein[a-z]* je mon ma ik mijn yo mi mis mio mia eu meu minha я мо[а-я] मैं[^ ]* मेर[^ ]* 我 私 僕
"""
_TOGETHER = """
    we our us you wir unser[a-z]* uns du dir sie nous notre on tu te vous nuestra [a-z]+mos nostr[ao] abbiamo vocês?
    noss[ao] onze? wij biz[a-z]* мы нам[а-я]* наш[а-я]* тобой हम[^ ]* तुम[^ ]* [^ ]+نا بيننا 我们 咱 你
"""
_MOST_WORDS_BETWEEN = 3
_MOST_CHARACTERS_BETWEEN = 8


def _any_of(words: str) -> re.Pattern[str]:
    found = fold_text(words).split()
    spaced, unspaced = (
        "|".join(word for word in found if bool(UNSPACED_RUN.search(word)) == is_unspaced)
        for is_unspaced in (False, True)
    )
    # Scripts without spaces have letters on both sides of a word: a word boundary would never match.
    return re.compile(rf"(?<!\w)(?:{spaced})(?!\w)" + (f"|{unspaced}" if unspaced else ""))


_ORDINALS: tuple[tuple[Session, re.Pattern[str]], ...] = (
    ("first", _any_of(_FIRST)),
    ("last", _any_of(_LAST)),
)
_TALKING, _BY_ONESELF, _WITH_US = _any_of(_TALK), _any_of(_ALONE), _any_of(_TOGETHER)


def mentions_speaker(text: str) -> bool:
    """Return whether the text mentions its speaker."""
    return _BY_ONESELF.search(fold_text(text)) is not None


def find_session(question: str) -> Session | None:
    folded = fold_text(question)
    talks = [*_TALKING.finditer(folded)]
    # "When did I last talk to my mother?" is not about a conversation with the assistant.
    if not talks or (mentions_speaker(question) and not _WITH_US.search(folded)):
        return None
    for session, pattern in _ORDINALS:
        if any(_is_beside(folded, *pair) for pair in product(pattern.finditer(folded), talks)):
            return session
    return None


def words_of_session(question: str) -> str:
    """Return the words of the question that name a conversation and say which one, in scripts without spaces with the
    characters beside them. They are no evidence for what was said."""
    folded = fold_text(question)
    patterns = (_TALKING, *(pattern for _, pattern in _ORDINALS))
    named = [match for pattern in patterns for match in pattern.finditer(folded)]
    beside = [1 if UNSPACED_RUN.search(match[0]) else 0 for match in named]
    return " ".join(
        folded[max(0, match.start() - width) : match.end() + width]
        for match, width in zip(named, beside, strict=True)
    )


def _is_beside(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    between = text[min(one.end(), other.end()) : max(one.start(), other.start())]
    if UNSPACED_RUN.search(between):
        return len(between) <= _MOST_CHARACTERS_BETWEEN
    return len(between.split()) <= _MOST_WORDS_BETWEEN
