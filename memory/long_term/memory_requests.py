"""Reads requests to forget or to remember something, as people write them in a chat.

A request is an imperative, or a question whether the assistant could, preceded by little but courtesy. Its object
follows the verb, or precedes it in languages that end with their verbs. "Do not forget" asks to remember.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from memory.language.languages import LATIN, QUESTION_MARKS, SCRIPTS, close_gaps, fold_text, stop_words
from memory.language.sentences import split_sentences
from memory.language.small_talk import SMALL_TALK
from memory.long_term.verb_last_requests import Kind, read_verb_last

MAX_CHARS = 1_000
"""Longer texts are not read as requests, which are short."""
MOST_BEFORE = 10
"""Most words of courtesy before a request."""
MOST_BARE_CHARS = 60

_FORGET = re.compile(
    r"forget|vergiss|vergesst|vergessen|oubli(?:i?e[sz]?|er)|olv[ií]d(?:a|e|es|ar)(?:te|se)?|dimentic(?:a|are|hi)(?:ti|te)?|"
    r"dimenticarti|sc[oò]rd(?:a|ar|are|i)(?:ti|te)?|esque[cç](?:a|as|e|er)|vergeet|vergeten|забудь(?:те)?|забыть|забывай(?:те)?|[تاأ]?نس[ىي]?|"
    r"zapomnij(?:cie)?|zapomnie[cć]|zapominaj"
)
_REMEMBER = re.compile(
    r"remember|memori[sz]\w{1,2}|merk|merken?|erinnere|souviens|souvenez|retiens|retene[zr]|retenir|rappelle|"
    r"recuerd(?:a|e|es)|recordar|acu[eé]rdate|ricord(?:a|ati|are|arti)|lembr(?:a|e|ar)|onthoud(?:en)?|"
    r"запомни(?:те|ть)?|помни(?:те)?|تذكري?|احفظ|zapami[eę]taj(?:cie)?|zapami[eę]ta[cć]|pami[eę]taj(?:cie)?"
)
_WISHED: dict[Kind, re.Pattern[str]] = {
    "forget": re.compile(r"vergisst|olvid[ae]ras?|dimenticass[ie]|esquecesses?|забыл[аи]?|zapomnia[lł]a?"),
    "remember": re.compile(
        r"merkst|erinnerst|behältst|souviennes|rappelles|retiennes|recordaras?|ricordassi|lembrasse|"
        r"запомнил[аи]?|تتذكري?|zapami[eę]ta[lł]a?"
    ),
}
"""Their forms after "I want that you"; elsewhere they request nothing."""
_IDIOM = re.compile(
    r"(?:keep|bear)\s+in\s+mind|(?:make\s+a\s+)?note(?=\s+that|z?\s+que)|denke?\s+(?:bitte\s+)?dr?a?ran|tieni\s+(?:presente|a\s+mente)|"
    r"ten(?:ga|ha)?\s+(?:en\s+cuenta|presente)|(?:apunta|anot[ae]|guard[ae]|g(?:uarda|ardez?)\s+(?:en\s+(?:tête|mente)|à\s+l['’]esprit))(?=\s+que)|"
    r"behalt(?:e|en\s+sie)?\s+(?:bitte\s+)?im\s+(?:Kopf|Hinterkopf|Gedächtnis)|notiere?\s+dir|segnati|noteer(?=\s+dat)|ten(?:ha)?\s+em\s+mente|houd\s+er\s+rekening\s+mee|denk\s+eraan|"
    r"имей(?:те)?\s+в\s+виду|(?:учти|запиши)(?:те)?(?=,?\s+что)|ضع\s+في\s+اعتبارك|miej\s+na\s+uwadze",
    re.IGNORECASE,
)
"""Idioms for remembering something."""


def _words(text: str) -> frozenset[str]:
    return frozenset(map(fold_text, text.split()))


_ERASE = re.compile(
    r"delete|erase|wipe|remove|l[oö]sch(?:en?)?|entfern(?:en?)?|borr[ae]|elimin[ae]|efface[rz]?|supprime[rz]?|cancella|rimuovi|"
    r"apag(?:a|ue)|remov[ae]|wis|verwijder|удалит?е?|сотрит?е?|убери(?:те)?|"
    r"احذف|امسح|usu[nń](?:cie)?"
)
_FROM_MEMORY = re.compile(
    r"\s*\b(?:from|aus|de|della?|da|dalla?|uit|из|من|z)\s+(?:\w{1,6}\s+)?(?:memory|ged[aä]chtnis|memoria|m[eé]moire|memória|geheugen|памяти|ذاكرتك|الذاكرة|pami[eę]ci)\b",
    re.IGNORECASE,
)
_NOT = _words("not t nicht pas no non nao niet не لا nie")
_DENIED_LAST = re.compile(
    r"\b(?:nicht|niet|(?P<never>nie|niemals|nooit))(?:\s*,?\s*(?:bitte|alsjeblieft|ja|hoor|mehr|meer))?[\s.!]*$",
    re.IGNORECASE,
)
"""In German and Dutch "not" follows what it denies: "Vergiss meinen Geburtstag nicht"."""
_DENIED_BEHIND = _words("nicht nie niemals pas jamais niet nooit")
"""Words that may deny the verb before them, in German, French and Dutch. In other languages they deny what is to be
remembered: "Remember never to call me Bob"."""
_POLISH = ("zap", "pami", "usu")
"""Beginnings of Polish verbs. Polish "nie" is not the German one."""
_PAUSE = re.compile("[,:;，،：]")
_HOW = _words(
    "how why wie warum comment pourquoi como porque come perche hoe waarom как почему كيف لماذا jak dlaczego"
)
_NEVER = _words("never ever niemals jamais nunca mai nooit никогда أبدا nigdy")
_I = _words("i we ich wir je j nous yo nosotros io noi eu nos ik wij я мы انا نحن ja my")
_THEIR_VERBS_END = frozenset("hkmwz")
"""First letters of modal verbs in languages that put the main verb last: können, möchten, zullen, hätten."""
_YOU = _words("you du dir dich sie tu te toi vous ti usted lei voce se je jij u ты вы")
_ONESELF = _words("te ti se t")
"""Reflexive forms of "you" before a denied verb: "não se esqueça", "non ti dimenticare"."""
_THEY = re.compile(
    r"they|people|she|he|er|elles?|ils?|on|ellas?|el|ellos|lei|lui|loro|el[ae]s?|hij|zij|он[аи]?|هو|هي|onlar|oni|one"
)
_CAN = """
    can could would will want like kann konn wurd mocht pued podr quier quisier peu pourr veu voud voul veuill
    puo potre vorr pode quer kun wil zou може мог хочу هل يمكن أريد أرجو moze chce make sure aimer souhait
    gust piacer gost hatt хот أتمنى
"""
_ASKING = tuple(_CAN.split())
"""Beginnings of words that ask whether somebody can or would."""
_IF_YOU_PLEASE = re.compile(r"\bs['’]il\s+(?:te|vous)\s+pla[iî]t\b", re.IGNORECASE)
"""The "you" in it is not the subject of a verb."""
_PLEASE = _words("pls favor favore alsjeblieft gern gerne graag пожалуйста فضلك رجاء prosze prego")
_THAT = _words("that dass que qu che dat что чтобы أن أني أنني أننا أنه أنها ان انني ze że zebys")
_ABOUT = _words("about of uber sobre de di del d sur su over про об о обо عن")
_ALL = _words(
    "everything all what alles was tout ce todo lo tutto quello tudo o wat все всё то كل ما wszystko"
)
"""First words of "everything I told you about"."""
_TOLD_LAST = re.compile(
    r"\s+(?:(?:heb|had|habe?|hatte)\s+)?(?:gesagt|erzählt|verteld|gezegd)(?:\s+(?:habe?|hatte|heb|had))?[.!?\s]*$",
    re.IGNORECASE,
)
"""In German and Dutch "I told you" ends with its verbs: "was ich über Rex erzählt habe"."""
_FOR_GOOD = re.compile(
    r"[,\s]*(?:\b(?:and\s+)?(?:for\s+good|for\s*ever|(?:and\s+)?never\s+remember\s+it(?:\s+again)?|für\s+immer|"
    r"pour\s+toujours|para\s+siempre|per\s+sempre|para\s+sempre|voor\s+altijd|навсегда|sonsuza\s+kadar|na\s+zawsze))"
    r"[.!\s]*$|永远|永遠に|영원히|हमेशा के लिए|إلى الأبد",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"/forget\s+(?P<what>.+)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u064b-\u0652\u0900-\u0963])+|\d+")
_VOWEL_SIGNS = re.compile("[\u064b-\u0652]")


@dataclass(frozen=True, slots=True)
class _Request:
    kind: Kind
    what: str
    is_for_good: bool = False


def read_forget_request(text: str) -> str | None:
    """Return what the text asks to forget; None if it is no such request or does not say what."""
    text = text.strip()
    request = _read(text) if len(text) <= MAX_CHARS else None
    if request is None or request.kind != "forget":
        return None
    what = _FOR_GOOD.sub("", request.what.strip()).strip(" ,.!?。！？।؟")
    return what if what and not _says_nothing(what) else None


def is_for_good(text: str) -> bool:
    """Return whether a request says never to remember this again, even when asked to."""
    text = close_gaps(text.strip())
    if len(text) > MAX_CHARS:
        return False
    request = _read(text)
    return (request is not None and request.is_for_good) or _FOR_GOOD.search(text) is not None


def read_remember_requests(text: str) -> Iterator[str]:
    """Yield what a message asks to remember, by sentence: `I live in Paris.` for `Remember that I live in Paris.` A
    bare "remember that" means the sentence before."""
    before = ""
    for sentence in split_sentences(text):
        request = _read(sentence.strip()) if len(sentence) <= MAX_CHARS else None
        if request is not None and request.kind == "remember":
            what = before if _says_nothing(request.what) else request.what
            if what.strip():
                yield what.strip()
        before = sentence


def _read(text: str) -> _Request | None:
    text = close_gaps(text)
    command = _COMMAND.fullmatch(text)
    if command is not None:
        return _Request("forget", command["what"])
    kind, what = read_verb_last(text)
    return _Request(kind, what) if kind else _read_verb_first(text)


def _read_verb_first(text: str) -> _Request | None:
    text = _IF_YOU_PLEASE.sub("", text)
    erasing = _FROM_MEMORY.sub("", text)
    is_erasing, text = erasing != text, erasing
    matches = [*_WORD.finditer(text)]
    folded = [fold_text(match[0]) for match in matches]
    idiom = _IDIOM.search(text)
    for at, match in enumerate(matches[: MOST_BEFORE + 1] if idiom is None else matches):
        if idiom is not None:
            kind: Kind | None = "remember" if match.start() == idiom.start() else None
        else:
            is_wished = not _THAT.isdisjoint(folded[:at])
            # Deleting a file is a task: such a verb asks to forget only if memory is named.
            erases = is_erasing and _ERASE.fullmatch(match[0].casefold())
            kind = "forget" if erases else _kind_of(match[0], is_wished=is_wished)
        if kind is None:
            continue
        end = match.end() if idiom is None else idiom.end()
        if _asks(folded[:at], kind, text):
            return _read_behind(text, match, end, kind)
        # The first verb decides; a later one belongs to what is told.
        break
    return _read_in_front(text, [*zip(folded, matches, strict=True)])


def _read_behind(text: str, verb: re.Match[str], end: int, kind: Kind) -> _Request | None:
    """Return the request that this verb makes with the text after it, from character `end` on."""
    front = {fold_text(word) for word in _WORD.findall(_PAUSE.split(text[: verb.start()])[-1])[-3:]}
    is_denied, is_never = not _NOT.isdisjoint(front), not _NEVER.isdisjoint(front)
    denying = frozenset[str]() if fold_text(verb[0]).startswith(_POLISH) else _DENIED_BEHIND
    denying |= _NEVER if is_denied else frozenset()
    rest, is_marked, has_pause = text[end:], False, False
    while match := re.match(r"(['’,:，،\s-]*)([^\W\d_]+)['’]?", rest):
        word = fold_text(match[2])
        has_pause = has_pause or (kind == "remember" and _PAUSE.search(match[1]) is not None)
        # After a pause or "that" a denial belongs to what is to be remembered.
        if word in denying and not (is_marked or has_pause):
            is_denied, is_never = True, is_never or word in _NEVER
        elif word in _THAT or word in _ABOUT or word in _ALL:
            is_marked = True
            # Leave the word in the rest, because `_told_about` looks for it.
            if word in _ALL:
                break
        elif not (_is_polite(word) or (word in _YOU and not is_marked)):
            break
        rest = rest[match.end() :]
    rest = rest.strip(" ,:：،，\n")
    what = _told_about(rest) if is_marked else rest
    if not (is_marked or has_pause) and _is_denied_last(rest, kind):
        what, is_denied = _DENIED_LAST.sub("", rest), True
    if is_denied or is_never:
        kind = "remember" if kind == "forget" else "forget"
    is_question = text.endswith(QUESTION_MARKS)
    # "Do you remember Rex?" is a question that needs an answer.
    if kind == "remember" and is_question and not is_marked:
        return None
    is_bare = kind == "forget" and not is_marked
    # A bare "forget" with a comma or many words after it is mostly said in passing.
    if is_bare and (re.search(r"[,;:،]", what) or len(what) > MOST_BARE_CHARS):
        return None if not _is_own(what) else _Request(kind, what)
    return _Request(kind, what, is_for_good=is_never and kind == "forget")


def _is_denied_last(what: str, kind: Kind) -> bool:
    """Return whether "not" at the end denies the request, and not the sentence to be remembered."""
    match = _DENIED_LAST.search(what)
    if match is None or (match["never"] and kind == "remember") or re.search("[,;:]", what):
        return False
    return _I.isdisjoint(map(fold_text, _WORD.findall(what)))


def _read_in_front(text: str, words: Sequence[tuple[str, re.Match[str]]]) -> _Request | None:
    """Return the request that ends with its verb: "Kannst du bitte meine Adresse vergessen?", "Ich möchte, dass du
    meine Adresse vergisst"."""
    asking = [word for word, _ in itertools.takewhile(_is_asking_word, words[:-1])]
    verb_at = next((at for at, word in enumerate(asking[:2]) if word.startswith(_ASKING)), None)
    if verb_at is None or asking[verb_at][0] not in _THEIR_VERBS_END:
        return None
    is_wish = asking[0] in _I and not (_THAT.isdisjoint(asking) or _YOU.isdisjoint(asking))
    kind = _kind_of(words[-1][1][0], is_wished=is_wish) if is_wish or verb_at == 0 else None
    if kind is None:
        return None
    what = text[words[len(asking)][1].start() : words[-1][1].start()].strip()
    rest, _, last = what.rpartition(" ")
    is_denied = fold_text(last) in _NOT
    if is_denied or not _NOT.isdisjoint(asking):
        kind = "remember" if kind == "forget" else "forget"
    return _Request(kind, rest if is_denied else what)


def _is_asking_word(word: tuple[str, re.Match[str]]) -> bool:
    """Return whether the word precedes the object of a request. A capitalised word after the first may be a name."""
    begins_large = word[1][0][0].isupper() and word[1].start() > 0
    is_asking = word[0].startswith(_ASKING) and not begins_large
    return is_asking or word[0] in _I | _YOU | _THAT | _NOT or _is_polite(word[0])


@lru_cache(maxsize=8_192)
def _kind_of(word: str, *, is_wished: bool) -> Kind | None:
    """Return what a verb asks for; None if nothing. Its accents count: "olvidé" is no request."""
    plain = _VOWEL_SIGNS.sub("", unicodedata.normalize("NFC", word).casefold())
    if _FORGET.fullmatch(plain):
        return "forget"
    if _REMEMBER.fullmatch(plain):
        return "remember"
    wished = (kind for kind, pattern in _WISHED.items() if is_wished and pattern.fullmatch(plain))
    return next(wished, None)


def _asks(before: Sequence[str], kind: Kind, text: str) -> bool:
    """Return whether the words before a verb make it a request: courtesy, a question whether one could, or a wish that
    somebody does it."""
    if not all(_is_polite(word) or word in _function_words() or word.startswith(_ASKING) for word in before):
        return False
    if before and (before[0] in _HOW or _THEY.fullmatch(before[0])):
        return False
    is_asking = any(word.startswith(_ASKING) for word in before)
    if not _I.isdisjoint(before):
        return is_asking and not _YOU.isdisjoint(before)
    if is_asking:
        return True
    subjects = {*before} - _ONESELF if not _NOT.isdisjoint(before) else {*before}
    return _YOU.isdisjoint(subjects) and not (kind == "remember" and text.endswith(QUESTION_MARKS))


def _is_polite(word: str) -> bool:
    return word in SMALL_TALK or word in _PLEASE


def _told_about(what: str) -> str:
    """Return whom or what the request is about: "Rex" for "what I told you about Rex"."""
    words = [(fold_text(match[0]), match) for match in _WORD.finditer(what)]
    if not words or words[0][0] not in _ALL:
        return what
    ends = [match.end() for word, match in words[1:] if word in _ABOUT]
    what = _TOLD_LAST.sub("", what)
    return what[ends[-1] :].strip() if ends else what


def _is_own(what: str) -> bool:
    return re.match(r"(?:my|our)\b", what, re.IGNORECASE) is not None


@cache
def _function_words() -> frozenset[str]:
    # Polish has stop words but no stemmer.
    languages = (*LATIN, "pl", *(language for language, _ in SCRIPTS.values()))
    return frozenset().union(*map(stop_words, languages))


_NOTHING = re.compile(
    r"(?:(?:about )?it|this|that|everything|all|es|das|alles|ça|todo|eso|lo|questo|tutto|isso|tudo|het|dat|это|всё|все|"
    r"هذا|ذلك|它|这|这个|那个|これ|それ|全部|이거|그거|इसे|यह|bunu|onu|her şeyi|to|tego)?[\s.!?。，,]*",
    re.IGNORECASE,
)


def _says_nothing(what: str) -> bool:
    return _NOTHING.fullmatch(what) is not None
