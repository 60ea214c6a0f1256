"""Reads who does or is what, from the word order, in the languages that questions are asked in.

A fallback that lists as few words as possible: in any language the summarising model reports what is over (see
`memory.long_term.superseding`). A subject is "my" relative, a name at the beginning, or a "she" from the sentence
before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memory.language.languages import (
    CAPITAL,
    ENGLISH,
    LATIN,
    UNSPACED_RUN,
    fold_text,
    latin_language,
    stop_words,
)
from memory.language.sentences import strip_list_mark
from memory.long_term.claim_languages import DENIED, VALUE

NOW = re.compile(
    r"\b(?:now(?:adays)?|currently|these\s+days|jetzt|nun|inzwischen|mittlerweile|maintenant|désormais|ahora|adesso|ora|"
    r"agora|nu|tegenwoordig|теперь|сейчас|teraz|obecnie|الآن|حاليا|अब|artık|şimdi)(?!\w)|现在|如今|目前|已经|"
    r"(?:今|いま(?![すせし])|現在)(?![日年月週度回朝晩夜])は?、?|지금(?:은|도)?|이제(?:는)?|현재|요즘",
    re.IGNORECASE,
)
_MINE = (
    r"(?:my|our|mein\w*|unser\w*|mon|ma|notre|mi|nuestr[oa]|(?:il\s+)?mi[oa]|(?:[oa]\s+)?(?:meu|minha)|mijn|onze|"
    r"мо[йяеюи]\w{0,2}|наш\w{0,3}|m[oó]j[ae]?|मेर[ीाे])"
)
_OWN = rf"{_MINE}|제|내|우리|저희"
_NEW = re.compile(
    rf"(\b{_MINE}\s+)(?-i:new|neu\w\w?|nouve(?:au|lle|l)|nuev[oa]|nuov[oa]|nov[oa]|nieuwe?|now[aey]|нов\w\w|नय[ाीे]|न[ईए])\s+|"
    r"(我的?)新的?|^((?:私の)?)新しい|^((?:제\s+|내\s+)?)새(?:로운)?\s+|^((?:benim\s+)?)yeni\s+|(?<=ي)\s+الجديدة?(?!\w)",
    re.IGNORECASE,
)
"""Says that something of the speaker's is new. Capitalised words, as in New York, do not match."""
_SHE = re.compile(
    r"(?:she|he|sie|er|elle|il|ella|él|lei|lui|ela|ele|zij|ze|hij|она|он|ona|on|o|و?هي|و?هو|वह|वो|वे|她|他|彼女|彼|그녀|그)",
    re.IGNORECASE,
)
_NAME = rf"(?:(?:[{CAPITAL}]\.\s)?[{CAPITAL}][\w'’-]+(?:\.?\s[{CAPITAL}][\w'’-]+){{0,2}})"
_WHO = r"(?:[^\W\d]\w{0,4}\.\s)?[^\W\d][\w'’-]*(?:\s[\w'’-]+)??"
_TO = r"(?:in|to|at|near|bei|nach|à|au|en|a|em|para|te|naar|во?|на|w|do)"
_LIVE = r"lives?|living|lived|wohnt|lebt|habite|vit|viv[ea]|abita|mora|woont|жив[её]т|mieszka"
_MOVE = (
    r"(?:has\s+|have\s+)?moved|zieht|(?:a|est)\s+(?:déménagé|parti\w*)|se\s+(?:ha\s+)?mud[óa]\w*|si\s+è\s+trasferit[oa]|"
    r"mudou-se|se\s+mudou|is\s+verhuisd|переехала?|przeprowadził[ao]?(?:\s+się)?"
)
_CLAUSE = r"(?:^|[,;:]\s*(?:(?:and|und|et|y|e|en|и|а)\s+)?)(?P<subject>)"
"""Start of a verb without a subject, which is whoever was mentioned before."""
Patterns = dict[str, tuple[re.Pattern[str], ...]]


def _by_script(**patterns: tuple[str, ...]) -> Patterns:
    return {
        script: tuple(re.compile(pattern, re.IGNORECASE) for pattern in each)
        for script, each in patterns.items()
    }


# A pattern that begins with an unbounded run starts only at the beginning of that run. Tried from each place of a long
# word, it would read the rest of the word every time.
_BORDER = r"(?<![\w'’-])['’-]*"
_SPACED = (
    rf"{_BORDER}(?P<subject>{_WHO}(?:\s[\w'’-]+)??)\s+(?:(?P<verb>{_LIVE})|(?P<moved>{_MOVE}))"
    rf"\s+(?:\w+\s+)??{_TO}\s+{VALUE}"
)
_TURNED = rf"^(?P<verb>{_LIVE})\s+(?P<subject>{_MINE}\s+\w+|(?-i:{_NAME}))\s+{_TO}\s+{VALUE}"
_UNSAID = rf"{_CLAUSE}(?P<verb>{_LIVE})\s+(?:\w+\s+)??{_TO}\s+{VALUE}"
_RESIDES = _by_script(
    latin=(
        _SPACED,
        rf"{_BORDER}(?P<subject>{_WHO})\s+(?:ist|is)\s+(?:\w+\s+){{0,2}}?(?:nach|naar)\s+"
        r"(?P<value>[^.,;:!?\n]{1,60}?)\s+(?P<moved>(?:um)?gezogen|verhuisd)\b",
        r"(?<![\w'’])(?P<subject>[\w'’]+(?:\s[\w'’]+)?)\s+(?P<value>\w{2,30})['’]?"
        r"(?:[dt][ae]\s+(?P<verb>oturm?uyor|yaş(?:am)?ıyor)|y[ae]\s+(?P<moved>taşındı))\b",
        _TURNED,
        _UNSAID,
        rf"{_CLAUSE}(?P<value>\w{{2,30}})['’]?[dt][ae]\s+(?P<verb>oturm?uyor|yaş(?:am)?ıyor)\b",
    ),
    cyrillic=(_SPACED, _UNSAID),
    arabic=(
        rf"\b(?P<subject>\w+)\s+(?:(?P<verb>[تي]سكن|[تي]عيش)|(?P<moved>انتقلت?))\s+(?:في|إلى)\s+{VALUE}",
        rf"(?:(?P<verb>[تي]سكن|[تي]عيش)|(?P<moved>انتقلت?))\s+(?P<subject>\w+)\s+(?:في|إلى)\s+{VALUE}",
    ),
    devanagari=(
        r"(?<![^\s।,])(?:मेर[ीाे]\s+)?(?P<subject>(?:[^\s.]{1,4}\.\s)?[^\s।,]+)\s+(?P<value>[^।,\n]{1,30}?)\s+में\s+"
        r"(?:(?P<verb>रहत[ाीे])|(?P<moved>बस\s+गय[ाीे]))",
    ),
    kana=(
        r"(?P<subject>[^。、は\s]{1,10})は、?(?:[^。、は\n]{1,12}て、)?(?P<value>[^。、は\n]{1,30}?)[にへ]は?(?:(?P<verb>住んで)|(?P<moved>引っ?越し))",
    ),
    hangul=(
        r"(?P<subject>[^\s,.]{1,12}?)(?:은|는|이|가)\s+(?:[^\s,.]{1,8}서\s+)?(?P<value>[^\s,.]{1,20}?)(?:에서?|으?로)\s*"
        r"(?:(?P<verb>살)|(?P<moved>이사))",
    ),
    han=(
        r"(?:我的?|^)(?P<subject>[^。，,！？\s在住搬我]{1,8}?)(?:(?P<verb>住在|定居在)|(?P<moved>搬到了?|搬去了?))"
        r"(?P<value>[^。，,！？!?；\n了]{1,30})",
        r"[，,](?P<subject>)(?:(?P<verb>住在|定居在)|(?P<moved>搬到了?|搬去了?))(?P<value>[^。，,！？!?；\n了]{1,30})",
    ),
)
_I = r"(?:i|ich|wir|je|ik|wij|я|мы|أنا|نحن)"
_SHORT = r"(?P<value>[^\s.,;:!?]+(?:\s[^\s.,;:!?]+){0,4})[.!]*$"
_VERB = r"(?P<verb>(?:s['’]|se\s+|si\s+)?[^\W\d]+)"
# Case-sensitive, because a capitalised word continues the name and is no verb.
_DOES_IT = r"(?P<verb>[^\W\dA-ZÀ-ÖØ-ÞА-ЯЁ]\w*)"
_TURNED_NOW = re.compile(rf"{_VERB}\s+(?P<subject>{_SHE.pattern}|{_MINE}\s+\w+)\s+{VALUE}", re.IGNORECASE)
"""After "now" the verb precedes its subject in German and Dutch."""
_UNSAID_NOW = re.compile(rf"(?P<subject>)(?P<verb>(?!{_MINE}\b)[^\W\d]{{2,}}?[aeт])\s+{VALUE}", re.IGNORECASE)
_WITHOUT_PRONOUN = frozenset(["ahora", "adesso", "ora", "agora", "теперь", "сейчас"])
"""Words for "now" in languages whose verbs need no pronoun."""
_DOES_SPACED = (
    rf"{_MINE}\s+(?P<subject>[^\W\d][\w'’-]*)\s+{_VERB}\s+{VALUE}",
    rf"{_MINE}\s+(?P<subject>[^\W\d][\w'’-]*)\s+(?P<verb>)(?:[—–-]\s+)?(?P<value>[^\W\d]+)[.!]*$",
    rf"(?P<subject>{_SHE.pattern})\s+{_VERB}\s+{VALUE}",
    rf"(?P<subject>{_I})\s+(?P<verb>[^\W\d]+)\s+{_SHORT}",
    rf"(?-i:(?P<article>[^\W\d]{{1,3}}\s(?:[^\W\dA-Z][\w.]+\s)?)(?P<subject>(?P<name>{_NAME}))\s+{_DOES_IT})\s+{_SHORT}",
    rf"(?-i:(?P<subject>(?P<name>{_NAME}))\s+{_DOES_IT})\s+{_SHORT}",
)
_DOES = _by_script(
    latin=(
        # Look for a Turkish ending once; without it the value would be tried at every length in vain.
        rf"(?=[\s\S]*yor)(?:(?P<subject>o|(?:\w+\s+)?\w+[ıiuüae]m|(?-i:[{CAPITAL}][\w.-]+(?:\s[{CAPITAL}]\w+)?))\s+)?"
        r"(?P<value>[^.,\n]{1,60}?)\s+"
        r"(?P<verb>\w+yor)(?:(?P<speaker>um|uz)|lar)?[.!]*$",
        *_DOES_SPACED,
    ),
    cyrillic=_DOES_SPACED,
    arabic=(
        rf"(?P<verb>[يت]\w+)\s+(?P<subject>\w+ي)\s+{VALUE}",
        rf"(?P<subject>\w{{1,2}}\.\s\w+|\w+ي|ال\w+\s\w+)\s+(?P<verb>[يت]\w+|هو|هي)\s+{VALUE}",
        # Only the patterns for a pronoun and the speaker: Arabic has no capitals to mark names, and "my" is an ending.
        *_DOES_SPACED[2:4],
    ),
    devanagari=(
        r"(?:मेर[ीाे]\s+)?(?P<subject>\S+)\s+(?P<value>[^।,\n]{1,60}?)\s+(?P<verb>\S+)"
        r"(?:\s+(?:है|हैं|हूँ|हूं|था|थी|रह[ाीे]))+[।.!]*$",
        r"मेर[ीाे]\s+(?P<subject>\S+)\s+(?P<value>\S+)\s+(?P<verb>है|हैं)[।.!]*$",
    ),
    kana=(
        # "Is" and "is not" have the same empty verb; the past tense does not match.
        r"(?P<subject>[^。、は\s]{1,10})は、?(?P<value>[^。は\n]{1,40}?)(?P<verb>)(?:です|だ(?!っ)|(?:では|じゃ)(?:あり|な))\w*[。!！]*$",
        r"(?P<subject>[^。、は\s]{1,10})は、?(?P<value>[^。は\n]{1,40}?)[をにでへとが](?P<verb>\w)\w*[。!！]*$",
    ),
    hangul=(
        r"(?P<subject>(?:(?:우리|저희|[가-힣])\s+)?[^\s,.]{1,12}?)(?:은|는|이|가|께서|께서는)\s+"
        # Korean "to do" has another ending if it is denied.
        r"(?P<value>[^,.\n]{1,40}?)\s+(?P<verb>[^\s.하해]{1,2}|[하해])[^\s.]*?(?:지\s+(?:않|못)[^\s.]*|[^\s.]*)[.!]*$",
    ),
    han=(
        r"(?:我的?|(?=[他她])|(?=\w{2,4}在))(?P<subject>[^。，,！？\s在住搬我是叫上当做去到]{1,6}?)(?P<verb>[在是叫上当做去到开教养骑用])"
        r"(?P<value>[^。，,！？!?；\n了]{1,30})",
    ),
)
"""Any other predicate. Only the beginning of the verb counts, so that its tense does not."""
_NUMBER = r"(?P<verb>)(?P<value>\d[\d\s./-]*)"
_NUMBERS = _by_script(
    latin=(rf"(?P<subject>(?:\w+\s+){{0,2}}?\w{{2,}}[ıiuüae]m)\s+{_NUMBER}(?:['’]?d[ıiuü]r)?[.!]*$",),
    arabic=(rf"(?P<subject>(?:\w+\s+){{0,2}}?\w+ي)\s+(?:ه[وي]\s+)?{_NUMBER}[.!]*$",),
    devanagari=(rf"मेर[ीाे]\s+(?P<subject>\S+(?:\s\S+)??)\s+{_NUMBER}(?:है|हैं)?[।.!]*$",),
    hangul=(
        r"(?P<subject>(?:(?:우리|제|내|저희)\s+)?(?:[^\s,.]{1,8}\s+)?[^\s,.]{1,12}?)(?:은|는|이|가)\s+"
        rf"{_NUMBER}(?:번|이|예|입|야)[^\s.]*[.!]*$",
    ),
)
"""Statements of a number in languages that need no verb for it, or only an ending."""
_LIVES = re.compile(
    rf"\b(?:{_LIVE}|{_MOVE}|(?:um)?gezogen|verhuisd|oturm?uyor|yaş(?:am)?ıyor|taşındı)\b", re.IGNORECASE
)
"""Searched first: every Latin or Cyrillic sentence about a residence contains one of these, and few others do."""
LATIN_SCRIPT = "latin"
# The order matters: Japanese has Han characters beside its kana, and Korean may have them.
_SCRIPT = {
    "kana": re.compile("[\u3040-\u30ff]"),
    "hangul": re.compile("[가-힣]"),
    "han": re.compile("[\u3400-\u9fff]"),
    "devanagari": re.compile("[\u0900-\u0963]"),
    "arabic": re.compile("[\u0620-\u064a]"),
    "cyrillic": re.compile("[\u0400-\u04ff]"),
}
SCRIPTS = (*_SCRIPT, LATIN_SCRIPT)
_VERB_LETTERS = 4
_VERB_ENDING = re.compile(r"(?:[aeiu]?m)?[iu]yor$|(?<=[aeiou]\w)(?:ing|es|s|e)$")
"""In Turkish with its negation: "içiyor" and "içmiyor" are one verb, as "uses" and "using" are."""
_MENTION = re.compile(
    rf"\b{_MINE}\s+(?P<mine>[^\s\d.,]+(?:\s(?-i:[{CAPITAL}][\w'’-]+))?)|我的?[跟和给]?(?P<zh>[^。，,\s我在住叫是的现打来见看到跟]{{1,6}}?)(?:[在叫是昨今打来很不也都聊说了。，,]|$)|"
    r"^\W*(?P<ja>[^。、はがにの\s]{1,10}?)(?:[はがに]|から|と(?=会|話|電))|"
    r"^\W*(?:(?:우리|저희|[가-힣])\s+)?(?P<ko>[^\s,.]{1,8}?)(?:이|가|은|는|을|를|과|와|에게|한테)\s|"
    r"^\W*انتقلت?\s+(?P<who>\w+)|^\W*(?P<han>[^\s。，,我你他她它]{2,3}?)(?:已经|刚刚?|又)?[搬换调来去打说回]|"
    r"\b(?P<ar>\w+ي)\b",
    re.IGNORECASE,
)
_MENTION_IN_TURKISH = re.compile(
    r"\b(?P<tr>(?:(?:erkek|kız|büyük|küçük)\s+)?\w+[ıiuüae]m)(?:[ıiuüea]|[ld]en?|dan)?\b", re.IGNORECASE
)
_TURKISH = re.compile(r"yor(?:um|uz|lar)?\b")
_NAMED = re.compile(rf"(?P<name>{_NAME})|^\W*(?P<hi>(?:[\u0900-\u0963]{{1,4}}\.\s)?[\u0900-\u0963]+)\s")


# A title is no relation: "Frau Meier" does not mean somebody's wife.
_QUALIFIED = re.compile(
    rf"(?!(?i:mme|mlle|frau|herrn?|mrs?|ms|dr|д-р|г-н|г-жа)\s)(?:[^\s.]+\s)+(?-i:(?P<name>[{CAPITAL}]\S+))|.{{1,4}}の(?P<ja>.{{1,4}})|(?P<kin>[\u4e00-\u9fff]{{2}})(?P<zh>[\u4e00-\u9fff]{{2,3}})"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """`subject` resides at `value`, or does `value` by `verb`. `is_now`: the sentence says that this changed."""

    subject: str
    verb: str
    value: str
    is_now: bool

    @property
    def name(self) -> str:
        """Return the name in a subject such as "sister Ann"; empty if there is none."""
        match = _QUALIFIED.fullmatch(self.subject)
        return (match["name"] or match["ja"] or match["zh"]) if match else ""


def read_residence(sentence: str, before: str) -> Statement | None:
    """Return where somebody lives according to the sentence; "she" and "he" are from the sentence `before`."""
    plain, changes = without_now(sentence)
    script = script_of(plain)
    is_spaced = script in ("latin", "cyrillic")
    for pattern in () if is_spaced and not _LIVES.search(plain) else _RESIDES[script]:
        match = pattern.search(plain)
        # A person mentioned earlier in this sentence is nearer than one in the sentence before.
        if match and (subject := _named(match["subject"], plain[: match.start()].strip() or before, plain)):
            is_now = changes or match.groupdict().get("moved") is not None
            return Statement(subject, "residence", match["value"], is_now)
    return None


def read_statement(sentence: str, before: str) -> Statement | None:
    """Return another statement about somebody; "she" and "he" are read as in `read_residence`."""
    plain, changes = without_now(sentence)
    script = script_of(plain)
    for pattern in (*_behind_now(sentence, changes=changes), *_NUMBERS.get(script, ()), *_DOES[script]):
        match = pattern.match(plain)
        if match and "name" in pattern.groupindex and not _is_name(match):
            continue
        if match and (subject := _named(_subject_of(match), before, plain)):
            verb = _VERB_ENDING.sub("", fold_text(match["verb"]))[:_VERB_LETTERS]
            return Statement(subject, verb, match["value"], changes)
    return None


def _behind_now(sentence: str, *, changes: bool) -> Iterator[re.Pattern[str]]:
    """Yield additional patterns for a sentence that begins with "now"."""
    if changes and (now := NOW.match(strip_list_mark(sentence))):
        yield _TURNED_NOW
        if now[0].casefold() in _WITHOUT_PRONOUN:
            yield _UNSAID_NOW


def _subject_of(match: re.Match[str]) -> str:
    """Return the subject: "I" if the verb alone may say so, empty if its ending says otherwise."""
    groups = match.groupdict()
    is_speaker = groups["subject"] is None and groups.get("speaker", "um")
    return "I" if is_speaker else groups["subject"] or ""


def scripts_in(text: str) -> list[str]:
    """Return the scripts of a text, beginning with the one that indicates its language."""
    if text.isascii():
        return [LATIN_SCRIPT]
    return [*(script for script, pattern in _SCRIPT.items() if pattern.search(text)), LATIN_SCRIPT]


def script_of(text: str) -> str:
    """Return the script that indicates the language of a text."""
    return scripts_in(text)[0]


# Three functions read the same sentence in a row.
@lru_cache(maxsize=64)
def without_now(sentence: str) -> tuple[str, bool]:
    """Return the sentence without words for "now" and "no longer", and whether there were any."""
    said = strip_list_mark(sentence)
    # Remove denials first, because some contain "now".
    plain, now = NOW.subn(" ", without_denial(said))
    if not now and plain == said:
        return plain, False
    # In scripts without spaces a removed word leaves no gap; Korean has spaces.
    between = "" if UNSPACED_RUN.search(plain) and script_of(plain) != "hangul" else " "
    plain = between.join(plain.split()).strip(" ,、，")
    return plain[:1].upper() + plain[1:], True


@lru_cache(maxsize=64)
def without_denial(sentence: str) -> str:
    """Return the sentence without words that say that something holds no longer."""
    for pattern in DENIED:
        sentence = pattern.sub(
            lambda found: f" {found[found.lastindex]}" if found.lastindex else " ", sentence
        )
    return sentence


def without_new(sentence: str) -> tuple[str, bool]:
    """Return the sentence without a word that calls a possession new, and whether there was one: the new one replaces
    the one before."""
    # Each alternative keeps its own group; the last one keeps nothing.
    plain, new = _NEW.subn(lambda found: found[found.lastindex] if found.lastindex else "", sentence, count=1)
    return plain, new > 0


def _is_name(match: re.Match[str]) -> bool:
    """Return whether a capitalised sentence begins with a name, perhaps after an article and a title. English also
    requires a name of two words, a capital or digit in the value, or a verb that ends in "s" or "ed"."""
    words = [fold_text(word) for word in match[0].split()]
    if "." in match[0][: match.start("verb")]:
        return _may_be_article(words[0]) == ("article" in match.re.groupindex)
    language = latin_language(words)
    if (words[0] in stop_words(language)) != ("article" in match.re.groupindex):
        return False
    is_telling = (
        " " in match["name"] or language != ENGLISH or any(c.isupper() or c.isdigit() for c in match["value"])
    )
    return is_telling or fold_text(match["verb"]).endswith(("s", "ed"))


def _may_be_article(word: str) -> bool:
    return any(word in stop_words(language) for language in LATIN)


def _named(subject: str, before: str, sentence: str) -> str:
    """Return the person or thing without "my". For "she", or without a subject, return who was mentioned in `before`;
    empty if nobody was."""
    words = subject.split()
    if words and not _SHE.fullmatch(words[-1]):
        kept = [word for word in words if not re.fullmatch(_OWN, word, re.IGNORECASE)]
        return " ".join(kept)
    mention = _MENTION_IN_TURKISH if _TURKISH.search(sentence) else _MENTION
    mentioned = mention.search(before) or _NAMED.search(before)
    return next((name for name in mentioned.groups() if name), "") if mentioned else ""
