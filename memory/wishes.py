"""The wishes to forget something and to remember it, as people write them in a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.sentences import split_sentences

MAX_CHARS = 1_000
"""Longer messages tell something; a wish is short."""

_POLITE = (
    r"(?:(?:please|pls|ok|okay|hey|and|now|so|can you|could you|would you|will you|i want you to|i'd like you to|"
    r"bitte|kannst du|s'il te plaît|por favor)[,:]?\s+)*"
)
_ENGLISH = (
    r"forget(?:\s+please)?\s+(?:that|about|everything\s+about|all\s+about|what\s+you\s+know\s+about|"
    r"what\s+i\s+(?:said|told\s+you|wrote|mentioned)(?:\s+(?:about|that))?|my|our)\s+(?P<what>.+)"
)
_GERMAN = (
    r"(?:vergiss|vergesst|vergessen\s+sie)(?:\s+bitte)?[,:]?\s+"
    r"(?:dass|alles\s+über|was\s+ich\s+(?:dir\s+)?über|mein\w*|unser\w*)\s+(?P<what>.+)"
)
_FRENCH = r"oublie[zs]?\s+(?:que\s+|qu'|tout\s+sur\s+|ce\s+que\s+j'ai\s+dit\s+(?:sur|de)\s+)(?P<what>.+)"
_SPANISH = r"olvida\s+(?:que|todo\s+sobre|lo\s+que\s+dije\s+(?:sobre|de))\s+(?P<what>.+)"
_COMMAND = r"/forget\s+(?P<what>.+)"
_WISHES = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (_COMMAND, *(_POLITE + wish for wish in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH)))
)
_FOR_GOOD = re.compile(
    r"[,\s]*(?:\b(?:and\s+)?(?:for\s+good|for\s*ever|(?:and\s+)?never\s+remember\s+it(?:\s+again)?|für\s+immer|"
    r"pour\s+toujours|para\s+siempre))[.!\s]*$",
    re.IGNORECASE,
)
_NEVER = re.compile(
    rf"{_POLITE}(?:never|don't\s+ever|do\s+not\s+ever)\s+remember(?:\s+that)?\s+(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER = re.compile(
    rf"{_POLITE}(?:(?:do\s+)?remember|keep\s+in\s+mind|don't\s+forget|do\s+not\s+forget|"
    r"merke?n?\s+(?:dir|sie\s+sich)|vergiss\s+nicht|souviens-toi|souvenez-vous|retiens|n'oublie\s+pas|"
    r"recuerda|no\s+olvides|请?(?:你)?记住)(?:\s+bitte)?[,:：，]?\s*(?:that\s+|dass\s+|que\s+|qu')?(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_NOTHING = re.compile(r"(?:it|this|that|everything|all|es|alles|ça|todo)?[\s.!?]*", re.IGNORECASE)


def read_forget_wish(text: str) -> str | None:
    """What is to be forgotten; None where the text is no such wish, or does not say what."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        return None
    for pattern in (*_WISHES, _NEVER):
        match = pattern.fullmatch(text)
        if match is not None:
            what = _FOR_GOOD.sub("", match["what"].strip()).rstrip(".!?").strip()
            return None if _NOTHING.fullmatch(what) else what
    return None


def is_for_good(text: str) -> bool:
    """Whether a wish says that it is never to be remembered, even when it is asked for again."""
    text = text.strip()
    return _NEVER.fullmatch(text) is not None or _FOR_GOOD.search(text) is not None


def wished_remembered(text: str) -> Iterator[str]:
    """What a message asks to remember, by sentence: `I live in Paris.` of `Remember that I live in Paris.`"""
    for sentence in split_sentences(text):
        match = _REMEMBER.fullmatch(sentence.strip())
        if match is not None and not sentence.rstrip().endswith(("?", "？", "؟")):
            yield match["what"].strip()
