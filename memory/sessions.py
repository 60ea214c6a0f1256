"""Finds that a question asks for the first conversation, or for the last one."""

from __future__ import annotations

import re
from typing import Literal

from memory.languages import UNSPACED_RUN, fold_text

Session = Literal["first", "last"]

# Of each language: what is first, what is last, and the word for a conversation or for talking.
_FIRST = r"""
    first erste[ns]? premi\w+ primer\w* prim[ao] eerste ilk перв\w+ أول الأولى पहल[ीे] 最初 第一次 初めて はじめて 처음
    첫
"""
_LAST = r"""
    last letzte[ns]? derni\w+ ultim[ao] pasada vorige laatste son geçen прошл\w+ последн\w+ آخر الماضية الأخيرة पिछल[ीे]
    上次 上一次 前回 지난번 마지막
"""
_TALK = r"""
    conversation\w* conversaci\w+ conversazion\w+ conversa\w* chat\w* talk\w* spoke\w* gesprach\w* unterhalt\w+
    gesprochen parl\w+ habl\w+ fal\w+ gesprek\w* sohbet\w* konus\w+ разгов\w+ бесед\w+ говор\w+ محادثة محادثتنا تحدثنا
    حديثنا बातचीत बात 聊 对话 谈 話し 会話 대화 이야기 얘기
"""
_GAP = r"(?:\W+\w+){0,3}?\W+"
_UNSPACED_GAP = ".{0,8}?"


def _beside(ordinals: str) -> re.Pattern[str]:
    """Return what finds one of these words and one for talking close to each other."""
    pairs = []
    for gap, is_unspaced in ((_GAP, False), (_UNSPACED_GAP, True)):
        ordinal, talk = (
            "|".join(word for word in words.split() if bool(UNSPACED_RUN.search(word)) == is_unspaced)
            for words in (fold_text(ordinals), fold_text(_TALK))
        )
        mark = "" if is_unspaced else r"\b"
        one, other = f"{mark}(?:{ordinal}){mark}", f"{mark}(?:{talk}){mark}"
        pairs += [f"{one}{gap}{other}", f"{other}{gap}{one}"]
    return re.compile("|".join(pairs))


_PATTERNS: tuple[tuple[Session, re.Pattern[str]], ...] = (
    ("first", _beside(_FIRST)),
    ("last", _beside(_LAST)),
)


def find_session(question: str) -> Session | None:
    folded = fold_text(question)
    return next((session for session, pattern in _PATTERNS if pattern.search(folded)), None)
