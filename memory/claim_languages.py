"""Patterns of claims in German, French and Spanish, under the same names as the English ones.

A fallback: in any language, the nightly consolidation names what is over (see `memory.consolidation`).
"""

from __future__ import annotations

import re

VALUE = r"(?P<value>[^.,;:!?\n]{1,80})"
_IN = r"(?:in|bei|nahe|nach)"
_FIXED: tuple[tuple[str, str], ...] = (
    (
        "residence",
        rf"\bich\s+(?:wohne|lebe|wohnte|lebte)\s+(?:jetzt\s+|nun\s+|nicht\s+mehr\s+)?{_IN}\s+{VALUE}",
    ),
    (
        "residence",
        r"\bich\s+(?:bin|ziehe)\s+(?:\w+\s+){0,3}?nach\s+(?P<value>[^.,;:!?\n]{1,60}?)\s+(?:um)?gezogen\b",
    ),
    ("residence", rf"\bich\s+ziehe\s+(?:\w+\s+){{0,3}}?nach\s+{VALUE}"),
    (
        "employer",
        rf"\bich\s+(?:arbeite|arbeitete)\s+(?:jetzt\s+|nun\s+|nicht\s+mehr\s+)?(?:bei|für)\s+{VALUE}",
    ),
    ("age", r"\bich\s+bin\s+(?:jetzt\s+)?(?P<value>\d{1,3})(?:\s+Jahre(?:\s+alt)?)?(?=\s*(?:[.,;!?]|$))"),
    ("status", r"\bich\s+bin\s+(?:jetzt\s+)?(?P<value>ledig|verheiratet|geschieden|verlobt|verwitwet)\b"),
    (
        "residence",
        rf"\b(?:j['’]habite|je\s+vis|j['’]ai\s+déménagé|je\s+déménage|je\s+n['’]habite\s+plus)\s+"
        rf"(?:maintenant\s+)?(?:à|au|aux|en|dans)\s+{VALUE}",
    ),
    ("employer", rf"\bje\s+travaille\s+(?:maintenant\s+)?(?:chez|pour)\s+{VALUE}"),
    ("age", r"\bj['’]ai\s+(?:maintenant\s+)?(?P<value>\d{1,3})\s+ans\b"),
    ("status", r"\bje\s+(?:me\s+)?suis\s+(?P<value>célibataire|marié|divorcé|fiancé|veu[fv])"),
    (
        "residence",
        rf"\b(?:vivo|ya\s+no\s+vivo|me\s+(?:he\s+)?mud(?:é|ado|o))\s+(?:ahora\s+)?(?:en|a)\s+{VALUE}",
    ),
    ("employer", rf"\btrabajo\s+(?:ahora\s+)?(?:en|para)\s+{VALUE}"),
    ("age", r"\btengo\s+(?:ahora\s+)?(?P<value>\d{1,3})\s+años\b"),
    ("status", r"\b(?:estoy|soy)\s+(?P<value>solter|casad|divorciad|prometid|viud)[oa]\b"),
)
FIXED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _FIXED)
_OWNERS = "mein|meine|unser|unsere|mon|ma|mes|notre|nos|mi|mis|nuestro|nuestra"
_STATES = "ist|sind|war|lautet|est|sont|était|es|son|era|kostet|beginnt|cuesta|coûte|empieza|commence"
_NOW = r"(?:jetzt|nun|nicht\s+mehr|maintenant|désormais|ahora|ya\s+no)"
SUBJECT = re.compile(
    rf"\b(?P<owner>{_OWNERS})\s+(?P<subject>[\w'’-]+(?:\s[\w'’-]+){{0,4}}?)\s+(?:{_NOW}\s+)?(?:{_STATES})"
    rf"\s+(?P<adverb>{_NOW}\s+)?{VALUE}",
    re.IGNORECASE,
)
DENIED = re.compile(r"nicht\s+mehr|n['’]habite\s+plus|ya\s+no", re.IGNORECASE)
SEVERAL = re.compile(
    r"\b(?:auch|noch\s+ein\w*|ein(?:e[rs]?)?\s+(?:von|meiner)|manchmal|aussi|un\s+autre|une\s+autre|parfois|"
    r"también|otr[oa]|a\s+veces)\b",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"\s+(?:mit|seit|und|aber|weil|der|die|das|wo|bis|avec|depuis|et|mais|parce|qui|où|jusqu|con|desde|y|pero|"
    r"porque|que|donde|hasta)\b.*",
    re.IGNORECASE | re.DOTALL,
)
