"""Reads requests to forget or to remember in languages whose verbs end or begin a request: Japanese, Korean, Chinese,
Hindi and Turkish."""

from __future__ import annotations

import re
from typing import Literal

from memory.language.languages import QUESTION_MARKS

Kind = Literal["forget", "remember"]
_Forms = tuple[tuple[Kind, str], ...]
"""Patterns of requests in one language, in which white space is ignored. The first that matches the whole text
counts."""

_WHAT, _WHAT_IF_ANY = "(?P<what>.+?)", "(?P<what>.*?)"
_TO_THE_END = "(?P<what>.+)"
_END = r"[\s.!。！।?？]*"

_KUDASAI = "(?:ください|下さい|くれ|ほしい|です|ね)*"
_KOTO_WO = "(?:という|と)? (?:こと|の)? (?:を|は)? [、,]?"
_JAPANESE: _Forms = (
    ("remember", rf"{_WHAT_IF_ANY} {_KOTO_WO} 忘れないで (?:おいて)? {_KUDASAI}"),
    ("remember", rf"{_WHAT_IF_ANY} {_KOTO_WO} (?:覚えて|記憶して) (?:おいて|いて)? {_KUDASAI}"),
    ("remember", rf"覚えて (?:おいて)? (?:ください|ね)? [:：、,]\s* {_TO_THE_END}"),
    (
        "forget",
        rf"{_WHAT} (?:という)? (?:(?:について|に関して)\S{{1,5}}こと|のこと|こと|の件)? (?:について)? (?:を|は)?"
        "忘れて (?:ください|下さい|くれ|ほしい|欲しい|もらえ|もらいたい|くださ|いただけ)*"
        "(?:ますか|ませんか|る|です)? ね?",
    ),
    ("forget", rf"{_WHAT} (?:という)? (?:のこと|こと)? [をは]? (?:覚え|記憶し)ないで (?:おいて)? {_KUDASAI}"),
    ("forget", rf"{_WHAT} [をは]? (?:記憶|メモリー?)から (?:消して|削除して) (?:ください|くれ|ほしい)?"),
)

_JUSEYO = r"(?:\s*(?:줘|주세요))?"
_FACT = "(?:것|거|걸|점|사실)"
_HOPED = r"주셨으면\s*\S+|줬으면\s*\S+"
_KOREAN: _Forms = (
    (
        "remember",
        rf"{_WHAT_IF_ANY} (?:다는|라는|라고)?\s* {_FACT}? [을를은는]? ,?\s* 잊지\s*(?:마|말)\S* {_JUSEYO}",
    ),
    (
        "remember",
        rf"{_WHAT_IF_ANY} (?:라는|라고|(?<=다)는)?\s* {_FACT}? [을를]? ,?\s*"
        rf"기억해\s* (?:줘|주세요|줄래|둬|두세요|{_HOPED})? (?:요(?<=줘요|둬요))?",
    ),
    ("remember", rf"기억해 {_JUSEYO} \s*[:：,]\s* {_TO_THE_END}"),
    (
        "forget",
        rf"{_WHAT} (?:에\s*대해서?(?:\s*말한\s*것)?|다는\s*{_FACT})? [을를은는]?\s* (?:다\s*|모두\s*)?"
        rf"잊어\s* (?:줘|주세요|줄래|버려|주시겠어|줄\s*수\s*있어|주실\s*수\s*있나|{_HOPED})? 요?",
    ),
    ("forget", rf"{_WHAT} (?:다는\s*{_FACT})? [을를은는]?\s* 기억하지\s*(?:마|말)\S* {_JUSEYO}"),
    ("forget", rf"{_WHAT} [을를은는]?\s* 기억에서\s*(?:지워|삭제해) {_JUSEYO} \s*"),
)

_KEEP = "(?:记住|記住|记得|記得)"
_LOSE = "(?:忘记|忘掉|忘記|忘了)"
_YOU_SHOULD = "(?:请|請|帮我|我?(?:希望|想让|要)你|你要|你|要)*"
_PAUSE = r"[，,：:\s]*"
_CHINESE: _Forms = (
    (
        "forget",
        rf"(?:请|請|把)* {_WHAT} 从(?:你的)?(?:记忆|記憶)[里裡中]? (?:删|刪|抹|清|移)[掉除去]? [吧吗]?",
    ),
    ("forget", rf"(?:请|請|你)* (?:别|別|不要|不用)再? {_KEEP} {_PAUSE} {_TO_THE_END}"),
    (
        "remember",
        rf"[你您]? (?P<asked>能不能|能否|能|可不可以|可以) (?:帮我|幫我)? (?:记住|記住|记下|記下) {_PAUSE}"
        r"(?P<what>(?:(?!我的)|(?=.*是)).+?) [吗嗎]?",
    ),
    ("remember", rf"{_YOU_SHOULD} (?:别|別|不要|勿)忘[了记記]? {_PAUSE} {_TO_THE_END}"),
    ("remember", rf"{_YOU_SHOULD} (?:{_KEEP}|[记記]一?下) {_PAUSE} {_TO_THE_END}"),
    (
        "forget",
        rf"(?:请|請|麻烦|麻煩|你|我?(?:希望|想让|要)[你您]|能不能|能|可以|可不可以)* {_LOSE}"
        rf"(?:关于|關於|我说过的?|我告诉你的|的)* {_PAUSE} {_WHAT} (?:(?:的|这件|這件)事情?)? [吧吗嗎]?",
    ),
    ("forget", rf"(?:请|請|麻烦|你|能不能|可以)* 把{_WHAT} (?:(?:的|这件)事情?)? {_LOSE} [吧吗嗎]?"),
)

_KRPAYA, _YAH = r"(?:कृपया\s+)?", r"(?:यह\s+)?"
_BHUL_JAO = r"भूल\s+जा(?:ओ|इए|इये|एँ|एं|ना)"
_HINDI: _Forms = (
    ("remember", rf"{_KRPAYA} (?:मत|न)\s+भूल\S* (?:\s+जा\S*)? ,?\s+(?:कि\s+)? {_TO_THE_END}"),
    ("remember", rf"{_WHAT_IF_ANY} ,?\s* {_YAH} (?:भूल\S*\s+मत|(?:मत|न)\s+भूल\S*)"),
    ("remember", rf"{_KRPAYA} {_YAH} (?:याद|ध्यान)\s+रख\S+? [,:]?\s+(?:कि\s+)? {_TO_THE_END}"),
    ("remember", rf"{_WHAT_IF_ANY} ,?\s* (?:यह\s+|इसे\s+)? याद\s+रख(?:ो|ना|ें|िए|िएगा)"),
    ("forget", rf"{_KRPAYA} {_BHUL_JAO} ,?\s+कि\s+ {_TO_THE_END}"),
    (
        "forget",
        rf"(?:कृपया\s+|क्या\s+(?:आप|तुम)\s+)* {_WHAT} (?:\s+को|\s+के\s+बारे\s+में(?:\s+सब(?:\s+कुछ)?|\s+.+?\s+उसे)?)?"
        rf"\s+(?:{_BHUL_JAO}|भूल\s+सकते\s+(?:हैं|हो))",
    ),
    (
        "forget",
        rf"{_KRPAYA} {_WHAT} (?:\s+को)?\s+ (?:अपनी\s+)? (?:याददाश्त|स्मृति|मेमोरी)\s+से\s+ (?:हटा|मिटा|निकाल)\s*\S+",
    ),
)

_LUTFEN, _LUTFEN_LAST = r"(?:lütfen\s+)?", r"(?:\s+lütfen)?"
_UNUTMA = r"unutma(?:yın)?|hatırla(?:yın)?|aklında\s+tut"
_WISHED = r"man(?:[ıi]z)?[ıi]\s+ist\S+"
_TURKISH: _Forms = (
    ("forget", rf"{_WHAT} \s+hafıza(?:n|nız)dan\s+(?:sil|silin|çıkar) {_LUTFEN_LAST}"),
    ("remember", rf"{_LUTFEN} (?:[bş]unu\s+)? (?:{_UNUTMA})[,:\s]+(?!lütfen) {_TO_THE_END}"),
    (
        "remember",
        rf"{_LUTFEN} {_WHAT_IF_ANY} (?:\s+olduğunu|,?\s+bunu)? \s*\b"
        rf"(?:{_UNUTMA}|(?:unutma|hatırla){_WISHED}) {_LUTFEN_LAST}",
    ),
    (
        "forget",
        rf"{_LUTFEN} {_WHAT} (?:\s+hakkında(?:ki)?(?:\s+\S+){{0,2}}|\s+olduğunu)? ,?\s+"
        rf"unut(?:un|unuz|ur\s+mus\S+|abilir\s+mi\S+|sana|{_WISHED})? {_LUTFEN_LAST}",
    ),
)
_FORMS = tuple(
    (kind, re.compile(pattern + _END, re.IGNORECASE | re.DOTALL | re.VERBOSE))
    for kind, pattern in (*_JAPANESE, *_KOREAN, *_CHINESE, *_HINDI, *_TURKISH)
)
_VERB_LAST_LETTERS = re.compile(
    "[\u0900-\u097f\u1100-\u11ff\u3000-\uffff]|unut|hatırla|hafız|aklında", re.IGNORECASE
)
"""Every such request contains one of these, and few other texts do."""


def read_verb_last(text: str) -> tuple[Kind | None, str]:
    """Return (kind, what it is about); (None, "") if the text is no such request. A question may ask to forget, but
    must say "can you" to ask to remember."""
    if not _VERB_LAST_LETTERS.search(text):
        return None, ""
    is_question = text.endswith(QUESTION_MARKS)
    for kind, pattern in _FORMS:
        match = pattern.fullmatch(text)
        if match is not None:
            may_ask = kind == "forget" or "asked" in pattern.groupindex
            return (kind, match["what"]) if may_ask or not is_question else (None, "")
    return None, ""
