"""Forms of a word that no stemmer brings together: "went" is a form of "go". English, like the stemmer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from memory.terms import Analyzer

# A form with a star is in everyday use as another word or a name, too: "draw" asks for "drew" as well, but who asks for
# Drew, or what was founded, asks for that word alone. Without those that would find something else more often: "rose",
# "bit", "left", "led", "meant", "rang".
_FORMS = """
become became, begin began begun, bend bent, bite bitten, blow blew blown, break broke broken, bring brought,
build built, buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew* drawn,
drink drank drunk, drive drove driven, eat ate eaten, fall* fell fallen, feed fed, feel felt*, fight fought,
find found*, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
give gave given, go goes went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lend lent, lose lost, make made, meet met, pay paid, ride rode ridden, rise risen, run ran, say said,
see saw* seen, sell sold, send sent, shake shook shaken, shine shone, shoot shot*, show shown, sing sang sung, sit sat*,
sleep slept, speak spoke* spoken, spend spent, stand stood, steal stole* stolen, sweep swept, swim swam swum,
take took taken, teach taught, tell told, think thought, throw threw thrown, tore torn, understand understood,
wake woke* woken, wear wore worn, win won, write wrote written,
child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, wife wives, knife knives
"""
_OTHER_WORD_TOO = re.compile(r"\w+\*")


def read_forms(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """By the term of each form that is no other word, the terms of the others."""
    forms: dict[str, frozenset[str]] = defaultdict(frozenset)
    for group in _FORMS.split(","):
        terms = frozenset(analyzer.words(group))
        for term in analyzer.words(_OTHER_WORD_TOO.sub("", group)):
            forms[term] |= terms - {term}
    return forms
