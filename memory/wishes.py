"""The wish to forget something, as people write it in a chat."""

from __future__ import annotations

import re

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
_NOTHING = re.compile(r"(?:it|this|that|everything|all|es|alles|ça|todo)?[\s.!?]*", re.IGNORECASE)


def read_forget_wish(text: str) -> str | None:
    """What is to be forgotten; None where the text is no such wish, or does not say what."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        return None
    for pattern in _WISHES:
        match = pattern.fullmatch(text)
        if match is not None:
            what = match["what"].strip().rstrip(".!?").strip()
            return None if _NOTHING.fullmatch(what) else what
    return None
