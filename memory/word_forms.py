"""Forms of a word that no stemmer brings together: "went" is a form of "go". English, like the stemmer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from memory.terms import Analyzer

# Without those that are also a form of another word in use: "lives", "leaves", "lay".
_FORMS = """
become became, begin began begun, bend bent, bite bit bitten, blow blew blown, break broke broken, bring brought,
build built, buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew drawn,
drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought,
find found, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen,
get got gotten, give gave given, go goes went gone, grow grew grown, hang hung, hear heard, hide hid hidden,
hold held, keep kept, know knew known, lead led, leave left, lend lent, lose lost, make made, mean meant,
meet met, pay paid, ride rode ridden, ring rang rung, rise rose risen, run ran, say said, see saw seen,
sell sold, send sent, shake shook shaken, shine shone, shoot shot, show shown, sing sang sung, sit sat,
sleep slept, speak spoke spoken, spend spent, stand stood, steal stole stolen, stick stuck, sweep swept,
swim swam swum, take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown,
understand understood, wake woke woken, wear wore worn, win won, write wrote written,
child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, wife wives, knife knives
"""


def read_forms(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """By the term of each form, the terms of the others."""
    forms: dict[str, frozenset[str]] = defaultdict(frozenset)
    for group in _FORMS.split(","):
        terms = frozenset(analyzer.words(group))
        for term in terms:
            forms[term] |= terms - {term}
    return forms
