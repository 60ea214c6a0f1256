"""Patterns of claims in other languages than English, under the same names as the English ones.

A fallback: in any language, the nightly consolidation reports what is over (see `memory.long_term.consolidation`).
"""

from __future__ import annotations

import re

# Without French "mais", which is part of a denial in Portuguese.
CLAUSES = re.compile(
    r"[,;:，、；،]|\b(?:and|but|because|which|where|who|so|though|und|aber|weil|et|qui|y|pero|ma|mas|porque|maar|а|но|"
    r"ale|ama|लेकिन|और)\b",
    re.IGNORECASE,
)
VALUE = r"(?P<value>(?:\.(?=\s?\S)|[^.,;:!?\n。，、！？；،؟।]){1,80})"
"""Up to the end of the clause. A full stop inside a sentence, e.g. after a title, does not end it."""
_IN = r"(?:in|bei|nahe|nach)"
_SAID = r"(?<!\bno )(?<!\bnon )(?<!\bnão )\b"
"""Start of a verb that is not denied, in languages that may leave out the subject."""
# Words before "I" mark the past in Chinese, because its verbs have no form for it.
_NOT_ONCE = "".join(
    rf"(?<!{word})(?<!{word}，)"
    for word in ("以前", "之前", "从前", "年前", "去年", "过去", "那时", "当时", "时候")
)
_FIXED: tuple[tuple[str, str], ...] = (
    (
        "residence",
        rf"\bich\s+(?:wohne|lebe)\s+(?:jetzt\s+|nun\s+|nicht\s+mehr\s+)?{_IN}\s+{VALUE}",
    ),
    (
        "residence",
        r"\bich\s+(?:bin|ziehe)\s+(?:(?!nicht\b|nie\b)\w+\s+){0,3}?nach\s+(?P<value>[^.,;:!?\n]{1,60}?)\s+(?:um)?gezogen\b",
    ),
    ("residence", rf"\bich\s+ziehe\s+(?:(?!nicht\b|nie\b)\w+\s+){{0,3}}?nach\s+{VALUE}"),
    (
        "employer",
        rf"\bich\s+arbeite\s+(?:jetzt\s+|nun\s+|nicht\s+mehr\s+)?(?:bei|für)\s+{VALUE}",
    ),
    # Nothing else may follow the number: "ich bin 20 Minuten zu spät" is no age.
    ("age", r"\bich\s+bin\s+(?:jetzt\s+)?(?P<value>\d{1,3})(?:\s+Jahre(?:\s+alt)?)?(?=\s*(?:[.,;!?]|$))"),
    ("status", r"\bich\s+bin\s+(?:jetzt\s+)?(?P<value>ledig|verheiratet|geschieden|verlobt|verwitwet)\b"),
    (
        "residence",
        rf"\b(?:j(?:['’]|e\s+)habite|je\s+vis|j['’]ai\s+déménagé|je\s+déménage)\s+"
        rf"(?:maintenant\s+)?(?:à|au|aux|en|dans)\s+{VALUE}",
    ),
    ("employer", rf"\bje\s+travaille\s+(?:maintenant\s+)?(?:chez|pour)\s+{VALUE}"),
    ("age", r"\bj['’]ai\s+(?:maintenant\s+)?(?P<value>\d{1,3})\s+ans\b(?!\s+d(?:['’]|e\b))"),
    ("status", r"\bje\s+(?:me\s+)?suis\s+(?P<value>célibataire|marié|divorcé|fiancé|veu[fv])"),
    (
        "residence",
        rf"{_SAID}(?:vivo|me\s+(?:he\s+)?mud(?:é|ado|o))\s+(?:ahora\s+)?(?:en|a)\s+{VALUE}",
    ),
    ("employer", rf"{_SAID}trabajo\s+(?:ahora\s+)?(?:en|para)\s+{VALUE}"),
    ("age", rf"{_SAID}tengo\s+(?:ahora\s+)?(?P<value>\d{{1,3}})\s+años\b(?!\s+de\b)"),
    (
        "residence",
        rf"{_SAID}(?:abito|vivo|mi\s+sono\s+trasferit[oa])\s+(?:adesso\s+|ora\s+|più\s+)?(?:a|in)\s+{VALUE}",
    ),
    (
        "residence",
        rf"{_SAID}(?:moro|me\s+mudei|mudei-me)\s+(?:agora\s+)?(?:em|no|na|para)\s+{VALUE}",
    ),
    # "Trabalho" is also a noun: "Trabalho em equipe é bom" has another verb and names no employer.
    (
        "employer",
        rf"(?:^\W*|\b(?:eu|agora)\s+)trabalho\s+(?:agora\s+)?(?:em|n[ao]s?|numa?|para)\s+(?!.{{0,80}}\s(?:é|são|foi|era)\s){VALUE}",
    ),
    ("residence", rf"\bik\s+(?:woon|ben\s+verhuisd)\s+(?:nu\s+)?(?:in|naar|te)\s+{VALUE}"),
    (
        "residence",
        rf"\bя\s+(?:теперь\s+|сейчас\s+|уже\s+)*(?:живу|переехала?)\s+(?:теперь\s+|сейчас\s+)?(?:во?|на)\s+{VALUE}",
    ),
    # Without vowel signs the verb means both "I moved" and "she moved": only at the beginning is it the speaker's.
    (
        "residence",
        rf"(?:(?<!\bلا )(?<!\bلم )(?<!\bلن )(?<!\bكنت )(?:أعيش|أسكن)|"
        rf"^\W*(?:لقد\s+|أنا\s+)?انتقلت)\s+(?:الآن\s+)?(?:في|إلى)\s+{VALUE}",
    ),
    ("residence", r"मैं\s+(?:अब\s+)?(?P<value>[^।,\n]{1,30}?)\s+में\s+रहत[ाी](?!\s+थ)"),
    # Turkish separates a name from its ending by an apostrophe; the ending depends on the sounds of the name.
    (
        "residence",
        r"(?:artık\s+|şimdi\s+)?\b(?P<value>[\w]{2,30})['’][dt][ae]\s+(?:otur(?=m?uyorum)|yaş(?=ıyorum|amıyorum))",
    ),
    (
        "residence",
        rf"(?:{_NOT_ONCE}我(?:现在|如今|目前|已经|已)*住在|我(?:现在|如今|目前|已经|已)*(?:搬到了?|搬去了?|定居在?))"
        r"(?![^。，,！？!?；\n]{0,40}的时候)(?P<value>[^。，,！？!?；\n了]{1,30})",
    ),
    (
        "employer",
        rf"{_NOT_ONCE}我(?:现在|如今|目前)*在(?P<value>[^。，,！？!?；\n]{{1,30}}?)(?:工作|上班)(?!过|的时候)",
    ),
    (
        "residence",
        r"(?:私|僕|俺|わたし)は、?(?:今|いま|現在)?は?、?(?P<value>[^。、は\n]{1,30}?)[にへ]は?"
        r"(?:住んで(?!い?(?:まし|た)|おりまし)|引っ越し|引越し)",
    ),
    (
        "residence",
        r"(?:저는|나는|전|난)\s+(?:지금\s+|현재\s+|이제\s+)?(?P<value>[^\s,.]{1,20}?)(?:에서?|으?로)\s*(?:살(?!았|던|고\s*있었)|이사)",
    ),
    # The ending, which marks the gender, is not part of the value.
    ("status", rf"{_SAID}(?:estoy|soy)\s+(?P<value>solter|casad|divorciad|prometid|viud)[oa]\b"),
)
FIXED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _FIXED)
_OWNERS = "mein|meine|unser|unsere|mon|ma|mes|notre|nos|mi|mis|nuestro|nuestra"
_STATES = (
    r"(?P<past>war|était|era)|ist|sind|lautet|est|sont|es|son|kostet|beginnt|cuesta|coûte|empieza|commence"
)
_NOW = r"(?:jetzt|nun|maintenant|désormais|ahora)"
SUBJECT = re.compile(
    rf"\b(?P<owner>{_OWNERS})\s+(?P<subject>[\w'’-]+(?:\s[\w'’-]+){{0,4}}?)\s+(?:{_NOW}\s+)?(?:{_STATES})"
    rf"\s+(?P<adverb>{_NOW}\s+)?{VALUE}",
    re.IGNORECASE,
)
NO_VALUE = re.compile(r"^(?:nicht|kein\w*|pas)\b", re.IGNORECASE)
"""First words of a denied value."""
_IN_CLAUSE = r"(?:\.(?=\s?\S)|[^.,;:!?\n]){1,80}"
_DENIED_IN_LATIN = (
    r"\bno\s+longer\b",
    rf"\b(?:do|does|did)(?:n['’]?t|\s+not)\b(?={_IN_CLAUSE}\bany(?:\s?more|\s+longer)\b)",
    rf"(?:(?<=['’]m)|(?<=['’]s)|(?<=['’](?:re|ve)))\s+not\b(?={_IN_CLAUSE}\bany(?:\s?more|\s+longer)\b)",
    rf"\b(is|are|am|was|were|has|have|had)(?:n['’]?t|\s+not)\b(?={_IN_CLAUSE}\bany(?:\s?more|\s+longer)\b)",
    r"(?:['’](?:ve|s)\s+|\b(?:have|has)\s+|\b)(?:(?:just|\w+ly)\s+)?(?:stopped|quit|gave\s+up|given\s+up)(?=\s+\w+ing\b)",
    r"\bnicht\s+(?:mehr|länger)\b",
    rf"\bkein(?:e[mnrs]?)?\b(?={_IN_CLAUSE}\bmehr\W*$)",
    # The verb stays, with its pronoun.
    r"\bn(?:['’]|e\s+)((?:\w{1,3}\s+|\w['’])?\w+\s+)plus\b(?!\s+que\b)",
    r"\b(?:ya\s+)?no\s+((?:\w{1,3}\s+)?\w+\s+)más\b(?!\s+(?:que|de)\b)",
    r"\bya\s+no\b",
    r"\bnon\s+((?:\w{1,3}\s+)?\w+\s+)più\b(?!\s+(?:che|di)\b)",
    r"\b(?:já\s+)?não\s+((?:\w{1,3}\s+)?\w+\s+)mais\b(?!\s+(?:que|do|de)\b)",
    r"\bjá\s+não\b",
    r"\bniet\s+(?:meer|langer)\b",
    rf"\bgeen\b(?={_IN_CLAUSE}\bmeer\W*$)",
    r"\bjuż\s+nie\b",
    r"\bnie\s+(\w+\s+)już\b",
    rf"\bartık\b(?={_IN_CLAUSE}m[ıiuü]yor)",
)
_DENIED_ELSEWHERE = (
    r"\b(?:больше|уже)\s+не\b",
    r"\bне\s+(\w+\s+)больше\b(?!\s+(?:чем|\d))",
    r"لم\s+[أتي]عد|\bما\s+عا?د\w{0,2}",
    r"(?<!\w)لا(?=\s[^.,،؛!?؟\n]{1,80}بعد\s+الآن)",
    r"(?<!\w)अब\s+([^।,!?\n]{1,80}?\s)नहीं(?!\w)",
    r"(?<!お)もう(?![一少す])(?=.{0,80}(?:ません|ない|なく))",
    r"不再|(?:已经?|早就)不(?=[住在是叫当做开教养骑用上])|(?<![差要得])不(?=[住在是叫当做开教养骑用上][^。，,！？!?；\n]{1,30}了\W*$)",
    r"(?:이제는?|더\s+이상)\s+([^.,!?\n]{1,40}?\s)안\s",
    r"더\s+이상|이제는?(?=\s[^.,!?\n]{1,40}지\s*(?:않|못))",
)
DENIED = tuple(re.compile("|".join(each), re.IGNORECASE) for each in (_DENIED_IN_LATIN, _DENIED_ELSEWHERE))
"""Phrases that say that something holds no longer. Matches are removed from the sentence, except for the group of the
alternative, which keeps the verb and the place."""
NOT_SO = re.compile(r"て?は?(?:い|おり)?(?:ませ|な)|하?지\s*(?:않|못)|고\s*있지|[au]?m[ıu]yor")
"""Continuations of a verb of `FIXED` that is denied by its ending."""
SEVERAL = re.compile(
    r"\b(?:auch|noch\s+ein\w*|ein(?:e[rs]?)?\s+(?:von|meiner)|manchmal|aussi|un\s+autre|une\s+autre|parfois|"
    r"también|otr[oa]|a\s+veces)\b",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"\s+(?:mit|seit|und|aber|weil|der|die|das|wo|bis|avec|depuis|et|mais|parce|qui|où|jusqu|con|desde|y|pero|"
    r"porque|que|donde|hasta)\b.*|\s+(?:mehr|meer|بعد)\W*$",
    re.IGNORECASE | re.DOTALL,
)
