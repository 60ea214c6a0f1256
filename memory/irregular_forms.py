"""Forms of English words that no stemmer brings together: who asks what somebody writes wants what was written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from memory.terms import Analyzer

# A form with a star is in everyday use as another word or a name, too: who asks for what was founded asks for that
# word alone.
_FORMS = """
begin began, bring brought, build built, buy bought, choose chose, come came, drive drove,
eat ate, feel felt*, find found*, get got, give gave, go went, grow grew, hear heard, keep kept,
know knew, make made, meet met, pay paid, run ran, say said, see saw*, sell sold, spend spent,
take took, teach taught, tell told, think thought, wear wore, write wrote
"""
_OTHER_WORD_TOO = re.compile(r"\w+\*")


def read_forms(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """Return, by the term of each form that is no other word, the terms of the others."""
    forms: dict[str, frozenset[str]] = defaultdict(frozenset)
    for group in _FORMS.split(","):
        terms = frozenset(analyzer.words(group))
        for term in analyzer.words(_OTHER_WORD_TOO.sub("", group)):
            forms[term] |= terms - {term}
    return forms
