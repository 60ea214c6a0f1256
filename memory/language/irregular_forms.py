"""Word forms that no stemmer unites: irregular verbs ("write", "wrote"), ordinals ("third", 3), and Arabic words with
and without a prefix."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from memory.language.languages import script_of
from memory.language.terms import Analyzer

# A form with a star is also another everyday word or a name: a question with "found" does not look up "find".
_FORMS = """
begin began, bring brought, build built, buy bought, choose chose, come came, drive drove,
eat ate, feel felt*, find found*, get got, give gave, go went, grow grew, hear heard, keep kept,
know knew, make made, meet met, pay paid, run ran, say said, see saw*, sell sold, spend spent,
take took, teach taught, tell told, think thought, wear wore, write wrote
"""
_OTHER_WORD_TOO = re.compile(r"\w+\*")


def read_forms(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """Return, by the term of each form without a star, the terms of its other forms."""
    forms: dict[str, frozenset[str]] = defaultdict(frozenset)
    for group in _FORMS.split(","):
        terms = frozenset(analyzer.words(group))
        for term in analyzer.words(_OTHER_WORD_TOO.sub("", group)):
            forms[term] |= terms - {term}
    return forms


# "First" is left out, because it mostly says when, and numbered lines begin with 1. So are words with another everyday
# meaning: Spanish "cuarto" (room), Portuguese "sexta" (Friday), German "achten" (to respect).
_ORDINALS = """
    2nd second deuxieme zweite[mnrs]? tweede
    3rd third troisieme dritte[mnrs]? derde tercer[ao]? terz[ao] terceir[ao]
    4th fourth quatrieme vierte[mnrs]? vierde
    5th fifth cinquieme funfte[mnrs]? vijfde
    6th sixth sixieme sechste[mnrs]? zesde sexto sest[ao]
    7th seventh septieme siebte[mnrs]? zevende septim[ao] settim[ao] setim[ao]
    8th eighth huitieme achte[mrs] achtste octav[ao] ottav[ao] oitav[ao]
    9th ninth neuvieme neunte[mnrs]? negende noven[ao] non[ao]
    10th tenth dixieme zehnte[mnrs]? tiende decim[ao]
"""
_ENDINGS = ("", "e", "eme", "o", "a")
"""Endings of an ordinal in digits, as `fold_text` leaves them: 3., 3e, 3ème, 3º, 3ª."""


def _read_ordinal(line: str) -> tuple[re.Pattern[str], frozenset[str]]:
    written, *words = line.split()
    return re.compile("|".join(words)), frozenset({written, *(written[:-2] + one for one in _ENDINGS)})


_NUMBERS = tuple(map(_read_ordinal, _ORDINALS.strip().split("\n")))
_ARABIC_PREFIXES = ("ل", "وال")
"""The common prefixes that the stemmer does not remove: "to" or "for", and "and the"."""
_LEAST_LETTERS = 3
"""Letters of a stem without these prefixes; shorter ones would match other words."""


def forms_of(word: str, term: str) -> frozenset[str]:
    """Return the terms of the other forms of a folded word whose own term is `term`: the numbers of an ordinal, or an
    Arabic word with and without its prefixes."""
    if script_of(word[0]) != "ARABIC":
        return next((numbers for pattern, numbers in _NUMBERS if pattern.fullmatch(word)), frozenset())
    bare = {term, *(term.removeprefix(prefix) for prefix in _ARABIC_PREFIXES)}
    bare = {stem for stem in bare if len(stem) >= _LEAST_LETTERS}
    return frozenset(prefix + stem for prefix in ("", *_ARABIC_PREFIXES) for stem in bare) - {term}
