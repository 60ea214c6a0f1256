"""Reads requests to forget or to remember something, as people write them in a chat.

A request is an imperative, or a question whether one could, with little in front of it but courtesy; what it is about
stands behind the verb, and in front of it where the language ends with its verbs. "Do not forget" asks to remember.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from memory.languages import LATIN, SCRIPTS, fold_text, stop_words
from memory.sentences import split_sentences
from memory.small_talk import SMALL_TALK

MAX_CHARS = 1_000
"""Longer messages tell something; a request is short."""
MOST_BEFORE = 10
"""Words of courtesy in front of a request."""
MOST_BARE_CHARS = 60

Kind = Literal["forget", "remember"]

_FORGET = re.compile(
    r"forget|vergiss|vergesst|vergessen|oubli(?:e[sz]?|er)|olv[ií]d(?:a|e|es|ar)(?:te|se)?|dimentic(?:a|are|hi)(?:ti|te)?|"
    r"dimenticarti|esque[cç](?:a|as|e|er)|vergeet|vergeten|забудь(?:те)?|забыть|забывай(?:те)?|[تاأ]?نس[ىي]?|"
    r"zapomnij(?:cie)?|zapomnie[cć]|zapominaj"
)
_REMEMBER = re.compile(
    r"remember|memori[sz]\w{1,2}|merk|merken?|erinnere|souviens|souvenez|retiens|retene[zr]|retenir|rappelle|"
    r"recuerd(?:a|e|es)|recordar|acu[eé]rdate|ricord(?:a|ati|are|arti)|lembr(?:a|e|ar)|onthoud(?:en)?|"
    r"запомни(?:те|ть)?|помни(?:те)?|تذكري?|احفظ|zapami[eę]taj(?:cie)?|zapami[eę]ta[cć]|pami[eę]taj(?:cie)?"
)
_IDIOM = re.compile(
    r"(?:keep|bear)\s+in\s+mind|note(?=\s+that|z?\s+que)|denke?\s+(?:bitte\s+)?dr?a?ran|tieni\s+(?:presente|a\s+mente)|"
    r"ten(?:ga)?\s+en\s+cuenta|apunta(?=\s+que)|ten(?:ha)?\s+em\s+mente|houd\s+er\s+rekening\s+mee|denk\s+eraan|"
    r"имей(?:те)?\s+в\s+виду|ضع\s+في\s+اعتبارك|miej\s+na\s+uwadze",
    re.IGNORECASE,
)
"""Where remembering has no verb of its own."""


def _words(text: str) -> frozenset[str]:
    return frozenset(map(fold_text, text.split()))


_ERASE = re.compile(
    r"delete|erase|l[oö]schen?|borr[ae]|efface[rz]?|supprime[rz]?|cancella|apag(?:a|ue)|wis|verwijder|удалит?е?|сотрит?е?|"
    r"احذف|امسح|usu[nń](?:cie)?"
)
_FROM_MEMORY = re.compile(
    r"\s*\b(?:from|aus|de|della?|da|dalla?|uit|из|من|z)\s+(?:\w{1,6}\s+)?(?:memory|ged[aä]chtnis|memoria|m[eé]moire|memória|geheugen|памяти|ذاكرتك|الذاكرة|pami[eę]ci)\b",
    re.IGNORECASE,
)
_NOT = _words("not t nicht pas no non nao niet не لا nie")
_NEVER = _words("never ever niemals jamais nunca mai nooit никогда أبدا nigdy")
_I = _words("i we ich wir je j nous yo nosotros io noi eu nos ik wij я мы انا نحن ja my")
_YOU = _words("you du dir dich sie tu te toi vous ti usted lei voce se je jij u ты вы что ты")
_ONESELF = _words("te ti se t")
"""Of "you" what stands in front of a verb that is denied: "não se esqueça", "non ti dimenticare"."""
_THEY = re.compile(
    r"they|people|she|he|er|elles?|ils?|on|ellas?|el|ellos|lei|lui|loro|el[ae]s?|hij|zij|он[аи]?|هو|هي|onlar|oni|one"
)
_CAN = """
    can could would will want like kann konn wurd mocht pued podr quier quisier peu pourr veu voul veuill puo potre vorr
    pode quer kun wil zou може мог хочу هل يمكن أريد أرجو moze chce make sure
"""
_ASKING = tuple(_CAN.split())
"""How words begin that ask whether somebody can or would."""
_PLEASE = _words("pls favor favore alsjeblieft пожалуйста فضلك رجاء prosze prego")
_THAT = _words("that dass que qu che dat что أن أني أنني أننا أنه أنها ان انني ze że")
_ABOUT = _words("about of uber sobre de di del d sur su over про об о обо عن")
_ALL = _words(
    "everything all what alles was tout ce todo lo tutto quello tudo o wat все всё то كل ما wszystko"
)
"""How it begins that all that was told about somebody is meant."""
_FOR_GOOD = re.compile(
    r"[,\s]*(?:\b(?:and\s+)?(?:for\s+good|for\s*ever|(?:and\s+)?never\s+remember\s+it(?:\s+again)?|für\s+immer|"
    r"pour\s+toujours|para\s+siempre|per\s+sempre|para\s+sempre|voor\s+altijd|навсегда|sonsuza\s+kadar|na\s+zawsze))"
    r"[.!\s]*$|永远|永遠に|영원히|हमेशा के लिए|إلى الأبد",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"/forget\s+(?P<what>.+)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u064b-\u0652\u0900-\u0963])+|\d+")
_VOWEL_SIGNS = re.compile("[\u064b-\u0652]")
_END = r"[\s.!。！।?？]*"
_VERB_LAST: tuple[tuple[Kind, bool, str], ...] = (
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:という|と)?(?:こと|の)?(?:を|は)?[、,]?忘れないで(?:おいて)?(?:ください|下さい|くれ|ね)*",
    ),
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:という|と)?(?:こと|の)?(?:を|は)?[、,]?覚えて(?:おいて|いて)?(?:ください|下さい|くれ|ほしい|ね)*",
    ),
    ("remember", False, r"覚えて(?:おいて)?(?:ください|ね)?[:：、,]\s*(?P<what>.+)"),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:という)?(?:のこと|こと|の件)?(?:について)?(?:を|は)?"
        r"忘れて(?:ください|下さい|くれ|ほしい|欲しい|もらえ|くださ|いただけ)*(?:ますか|ませんか|る)?ね?",
    ),
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:다는|라는|라고)?\s*(?:것|거|걸|점|사실)?[을를은는]?,?\s*잊지\s*(?:마|말)\S*(?:\s*(?:줘|주세요))?",
    ),
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:라는|라고|(?<=다)는)?\s*(?:것|거|걸|점|사실)?[을를]?,?\s*기억해\s*(?:줘|주세요|줄래|둬|두세요)?(?:요(?<=줘요|둬요))?",
    ),
    ("remember", False, r"기억해\s*(?:줘|주세요)?[:：,]\s*(?P<what>.+)"),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:에\s*대해서?(?:\s*말한\s*것)?|다는\s*(?:것|거|걸|사실))?[을를은는]?\s*(?:다\s*|모두\s*)?"
        r"잊어\s*(?:줘|주세요|줄래|버려|주시겠어|줄\s*수\s*있어|주실\s*수\s*있나)?요?",
    ),
    (
        "forget",
        True,
        r"(?P<what>.+?)[をは]?(?:記憶|メモリー?)から(?:消して|削除して)(?:ください|くれ|ほしい)?",
    ),
    ("forget", True, r"(?P<what>.+?)[을를은는]?\s*기억에서\s*(?:지워|삭제해)\s*(?:줘|주세요)?"),
    (
        "forget",
        True,
        r"(?:请|請|把)*(?P<what>.+?)从(?:你的)?(?:记忆|記憶)[里裡中]?(?:删|刪|抹|清|移)[掉除去]?[吧吗]?",
    ),
    ("forget", True, r"(?P<what>.+?)\s+(?:hafızandan|hafızanızdan)\s+(?:sil|silin|çıkar)(?:\s+lütfen)?"),
    ("remember", False, r"(?:请|請|帮我|你要|你|要)*(?:别|別|不要|勿)忘[了记記]?[，,：:\s]*(?P<what>.+)"),
    (
        "remember",
        False,
        r"(?:请|請|帮我|你要|你|要)*(?:记住|記住|记得|記得|记一?下|記一?下)[，,：:\s]*(?P<what>.+)",
    ),
    (
        "forget",
        True,
        r"(?:(?:请|請|麻烦|你|我想让你|我要你|能不能|能|可以|可不可以))*(?:忘记|忘掉|忘記|忘了)(?:关于|關於|我说过的?|我告诉你的|的)*"
        r"[，,：:\s]*(?P<what>.+?)(?:(?:的|这件|這件)事情?)?[吧吗嗎]?",
    ),
    (
        "forget",
        True,
        r"(?:请|請|麻烦|你|能不能|可以)*把(?P<what>.+?)(?:(?:的|这件)事情?)?(?:忘了|忘掉|忘记|忘記)[吧吗嗎]?",
    ),
    ("remember", False, r"(?:कृपया\s+)?(?:मत\s+|न\s+)भूल\S*(?:\s+जा\S*)?,?\s+(?:कि\s+)?(?P<what>.+)"),
    ("remember", False, r"(?P<what>.*?),?\s*(?:यह\s+)?(?:भूल\S*\s+मत|(?:मत|न)\s+भूल\S*)"),
    ("remember", False, r"(?:कृपया\s+)?(?:यह\s+)?(?:याद|ध्यान)\s+रख\S+?[,:]?\s+(?:कि\s+)?(?P<what>.+)"),
    ("remember", False, r"(?P<what>.*?),?\s*(?:यह\s+|इसे\s+)?याद\s+रख(?:ो|ना|ें|िए|िएगा)"),
    ("forget", True, r"(?:कृपया\s+)?भूल\s+जा(?:ओ|इए|इये|एँ|एं|ना),?\s+कि\s+(?P<what>.+)"),
    (
        "forget",
        True,
        r"(?:कृपया\s+|क्या\s+(?:आप|तुम)\s+)*(?P<what>.+?)(?:\s+को|\s+के\s+बारे\s+में(?:\s+.+?\s+उसे)?)?"
        r"\s+भूल\s+(?:जा(?:ओ|इए|इये|एँ|एं|ना)|सकते\s+हैं|सकते\s+हो)",
    ),
    (
        "remember",
        False,
        r"(?:lütfen\s+)?(?:[bş]unu\s+)?(?:unutma(?:yın)?|hatırla(?:yın)?)[,:\s]+(?!lütfen)(?P<what>.+)",
    ),
    (
        "remember",
        False,
        r"(?:lütfen\s+)?(?P<what>.*?)(?:\s+olduğunu|,?\s+bunu)?\s*\b(?:unutma(?:yın)?|aklında\s+tut|hatırla(?:yın)?)(?:\s+lütfen)?",
    ),
    (
        "forget",
        True,
        r"(?:lütfen\s+)?(?P<what>.+?)(?:\s+hakkında(?:ki)?(?:\s+\S+){0,2}|\s+olduğunu)?,?\s+"
        r"unut(?:un|unuz|ur\s+mus\S+|abilir\s+mi\S+|sana)?(?:\s+lütfen)?",
    ),
)
"""Of Japanese, Korean, Chinese, Hindi and Turkish, whose verbs end or begin a request, each with whether a question may
be one."""
_VERB_LAST_LETTERS = re.compile(
    "[\u0900-\u097f\u1100-\u11ff\u3000-\uffff]|unut|hatırla|hafız|aklında", re.IGNORECASE
)
"""One of these is in every such request, and in few other texts."""
_LAST = tuple(
    (kind, may_ask, re.compile(pattern + _END, re.IGNORECASE | re.DOTALL))
    for kind, may_ask, pattern in _VERB_LAST
)


@dataclass(frozen=True, slots=True)
class _Request:
    kind: Kind
    what: str
    is_for_good: bool = False


def read_forget_request(text: str) -> str | None:
    """Return what is to be forgotten; None where the text is no such request, or does not say what."""
    text = text.strip()
    request = _read(text) if len(text) <= MAX_CHARS else None
    if request is None or request.kind != "forget":
        return None
    what = _FOR_GOOD.sub("", request.what.strip()).strip(" ,.!?。！？।؟")
    return what if what and not _says_nothing(what) else None


def is_for_good(text: str) -> bool:
    """Return whether a request says that it is never to be remembered, even when it is asked for again."""
    request = _read(text.strip())
    return (request is not None and request.is_for_good) or _FOR_GOOD.search(text.strip()) is not None


def read_remember_requests(text: str) -> Iterator[str]:
    """Yield what a message asks to remember, by sentence: `I live in Paris.` of `Remember that I live in Paris.` Who
    says no more than "remember that" means the sentence before."""
    before = ""
    for sentence in split_sentences(text):
        request = _read(sentence.strip()) if len(sentence) <= MAX_CHARS else None
        if request is not None and request.kind == "remember":
            what = before if _says_nothing(request.what) else request.what
            if what.strip():
                yield what.strip()
        before = sentence


def _read(text: str) -> _Request | None:
    command = _COMMAND.fullmatch(text)
    if command is not None:
        return _Request("forget", command["what"])
    return _read_verb_last(text) or _read_verb_first(text)


def _read_verb_last(text: str) -> _Request | None:
    if not _VERB_LAST_LETTERS.search(text):
        return None
    is_question = text.endswith(("?", "？", "؟"))
    for kind, may_ask, pattern in _LAST:
        match = pattern.fullmatch(text)
        if match is not None:
            return None if is_question and not may_ask else _Request(kind, match["what"])
    return None


def _read_verb_first(text: str) -> _Request | None:
    erasing = _FROM_MEMORY.sub("", text)
    is_erasing, text = erasing != text, erasing
    matches = [*_WORD.finditer(text)]
    folded = [fold_text(match[0]) for match in matches]
    idiom = _IDIOM.search(text)
    for at, match in enumerate(matches[: MOST_BEFORE + 1] if idiom is None else matches):
        if idiom is not None:
            kind: Kind | None = "remember" if match.start() == idiom.start() else None
        else:
            kind = "forget" if is_erasing and _ERASE.fullmatch(match[0].casefold()) else _kind_of(match[0])
        if kind is None:
            continue
        end = match.end() if idiom is None else idiom.end()
        if _asks(folded[:at], kind, text):
            return _read_behind(text, folded, at, end, kind)
        break
    return _read_in_front(text, [*zip(folded, matches, strict=True)])


def _read_behind(text: str, folded: Sequence[str], at: int, end: int, kind: Kind) -> _Request | None:
    """Return the request whose verb is the word `at`, with what stands behind it, from character `end` on."""
    rest, is_marked, is_denied = text[end:], False, bool(_NOT & {*folded[max(0, at - 3) : at]})
    is_never = bool(_NEVER & {*folded[max(0, at - 3) : at + 3]})
    while match := re.match(r"['’,:，،\s-]*([^\W\d_]+)['’]?", rest):
        word = fold_text(match[1])
        if word in _NOT and not is_marked:
            is_denied = True
        elif word in _THAT or word in _ABOUT or word in _ALL:
            is_marked = True
            if word in _ALL:
                break
        elif not (_is_polite(word) or word in _NEVER or (word in _YOU and not is_marked)):
            break
        rest = rest[match.end() :]
    rest = rest.strip(" ,:：،，\n")
    what = _told_about(rest) if is_marked else rest
    if is_denied or is_never:
        kind = "remember" if kind == "forget" else "forget"
    is_question = text.endswith(("?", "？", "؟"))
    if kind == "remember" and is_question and not is_marked:
        return None
    is_bare = kind == "forget" and not is_marked
    if is_bare and (re.search(r"[,;:،]", what) or len(what) > MOST_BARE_CHARS):
        return None if not _is_own(what) else _Request(kind, what)
    return _Request(kind, what, is_for_good=is_never and kind == "forget")


def _read_in_front(text: str, words: Sequence[tuple[str, re.Match[str]]]) -> _Request | None:
    """Return the request of a question that ends with its verb: "Kannst du bitte meine Adresse vergessen?"."""
    if not words or not words[0][0].startswith(_ASKING) or not words[0][0].startswith(("k", "w", "z", "m")):
        return None
    _, verb = words[-1]
    kind = _kind_of(verb[0])
    first = next(
        (match.start() for word, match in words[1:] if word not in _YOU and not _is_polite(word)),
        verb.start(),
    )
    return _Request(kind, text[first : verb.start()]) if kind else None


@lru_cache(maxsize=8_192)
def _kind_of(word: str) -> Kind | None:
    """Return what a verb asks for. Its accents count: "olvidé" is no request."""
    plain = _VOWEL_SIGNS.sub("", unicodedata.normalize("NFC", word).casefold())
    return "forget" if _FORGET.fullmatch(plain) else "remember" if _REMEMBER.fullmatch(plain) else None


def _asks(before: Sequence[str], kind: Kind, text: str) -> bool:
    """Return whether these words in front of a verb make it a request: courtesy, a question whether one could, or a
    wish that somebody does."""
    if not all(_is_polite(word) or word in _function_words() or word.startswith(_ASKING) for word in before):
        return False
    if before and _THEY.fullmatch(before[0]):
        return False
    is_asking = any(word.startswith(_ASKING) for word in before)
    if not _I.isdisjoint(before):
        return is_asking and not _YOU.isdisjoint(before)
    if is_asking:
        return True
    subjects = {*before} - _ONESELF if not _NOT.isdisjoint(before) else {*before}
    return _YOU.isdisjoint(subjects) and not (kind == "remember" and text.endswith(("?", "？", "؟")))


def _is_polite(word: str) -> bool:
    return word in SMALL_TALK or word in _PLEASE


def _told_about(what: str) -> str:
    """Return whom or what it is about: "Rex" of "what I told you about Rex"."""
    words = [(fold_text(match[0]), match) for match in _WORD.finditer(what)]
    if not words or words[0][0] not in _ALL:
        return what
    ends = [match.end() for word, match in words[1:] if word in _ABOUT]
    return what[ends[-1] :].strip() if ends else what


def _is_own(what: str) -> bool:
    return re.match(r"(?:my|our)\b", what, re.IGNORECASE) is not None


@cache
def _function_words() -> frozenset[str]:
    languages = (*LATIN, "pl", *(language for language, _ in SCRIPTS.values()))
    return frozenset().union(*map(stop_words, languages))


_NOTHING = re.compile(
    r"(?:(?:about )?it|this|that|everything|all|es|das|alles|ça|todo|eso|lo|questo|tutto|isso|tudo|het|dat|это|всё|все|"
    r"هذا|ذلك|它|这|这个|那个|これ|それ|全部|이거|그거|इसे|यह|bunu|onu|her şeyi|to|tego)?[\s.!?。，,]*",
    re.IGNORECASE,
)


def _says_nothing(what: str) -> bool:
    return _NOTHING.fullmatch(what) is not None
