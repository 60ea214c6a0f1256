"""Reads requests to forget or to remember in languages whose verbs end or begin a request: Japanese, Korean, Chinese,
Hindi and Turkish."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["forget", "remember"]

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
        r"(?P<what>.*?)(?:という|と)?(?:こと|の)?(?:を|は)?[、,]?(?:覚えて|記憶して)(?:おいて|いて)?(?:ください|下さい|くれ|ほしい|です|ね)*",
    ),
    ("remember", False, r"覚えて(?:おいて)?(?:ください|ね)?[:：、,]\s*(?P<what>.+)"),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:という)?(?:(?:について|に関して)\S{1,5}こと|のこと|こと|の件)?(?:について)?(?:を|は)?"
        r"忘れて(?:ください|下さい|くれ|ほしい|欲しい|もらえ|もらいたい|くださ|いただけ)*(?:ますか|ませんか|る|です)?ね?",
    ),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:という)?(?:のこと|こと)?[をは]?(?:覚え|記憶し)ないで(?:おいて)?(?:ください|下さい|くれ|ほしい|ね)*",
    ),
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:다는|라는|라고)?\s*(?:것|거|걸|점|사실)?[을를은는]?,?\s*잊지\s*(?:마|말)\S*(?:\s*(?:줘|주세요))?",
    ),
    (
        "remember",
        False,
        r"(?P<what>.*?)(?:라는|라고|(?<=다)는)?\s*(?:것|거|걸|점|사실)?[을를]?,?\s*기억해\s*(?:줘|주세요|줄래|둬|두세요|주셨으면\s*\S+|줬으면\s*\S+)?(?:요(?<=줘요|둬요))?",
    ),
    ("remember", False, r"기억해\s*(?:줘|주세요)?[:：,]\s*(?P<what>.+)"),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:에\s*대해서?(?:\s*말한\s*것)?|다는\s*(?:것|거|걸|사실))?[을를은는]?\s*(?:다\s*|모두\s*)?"
        r"잊어\s*(?:줘|주세요|줄래|버려|주시겠어|줄\s*수\s*있어|주실\s*수\s*있나|주셨으면\s*\S+|줬으면\s*\S+)?요?",
    ),
    (
        "forget",
        True,
        r"(?P<what>.+?)(?:다는\s*(?:것|거|걸|사실))?[을를은는]?\s*기억하지\s*(?:마|말)\S*(?:\s*(?:줘|주세요))?",
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
    ("forget", True, r"(?:请|請|你)*(?:别|別|不要|不用)再?(?:记住|記住|记得|記得)[，,：:\s]*(?P<what>.+)"),
    (
        "remember",
        True,
        r"(?:你|您)?(?:能不能|能否|能|可不可以|可以)(?:帮我|幫我)?(?:记住|記住|记下|記下)[，,：:\s]*"
        r"(?P<what>(?:(?!我的)|(?=.*是)).+?)[吗嗎]?",
    ),
    (
        "remember",
        False,
        r"(?:请|請|帮我|我?(?:希望|想让|要)你|你要|你|要)*(?:别|別|不要|勿)忘[了记記]?[，,：:\s]*(?P<what>.+)",
    ),
    (
        "remember",
        False,
        r"(?:请|請|帮我|我?(?:希望|想让|要)你|你要|你|要)*(?:记住|記住|记得|記得|记一?下|記一?下)[，,：:\s]*(?P<what>.+)",
    ),
    (
        "forget",
        True,
        r"(?:(?:请|請|麻烦|麻煩|你|我?(?:希望|想让|要)(?:你|您)|能不能|能|可以|可不可以))*(?:忘记|忘掉|忘記|忘了)(?:关于|關於|我说过的?|我告诉你的|的)*"
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
        r"(?:कृपया\s+|क्या\s+(?:आप|तुम)\s+)*(?P<what>.+?)(?:\s+को|\s+के\s+बारे\s+में(?:\s+सब(?:\s+कुछ)?|\s+.+?\s+उसे)?)?"
        r"\s+भूल\s+(?:जा(?:ओ|इए|इये|एँ|एं|ना)|सकते\s+हैं|सकते\s+हो)",
    ),
    (
        "forget",
        True,
        r"(?:कृपया\s+)?(?P<what>.+?)(?:\s+को)?\s+(?:अपनी\s+)?(?:याददाश्त|स्मृति|मेमोरी)\s+से\s+(?:हटा|मिटा|निकाल)\s*\S+",
    ),
    (
        "remember",
        False,
        r"(?:lütfen\s+)?(?:[bş]unu\s+)?(?:unutma(?:yın)?|hatırla(?:yın)?|aklında\s+tut)[,:\s]+(?!lütfen)(?P<what>.+)",
    ),
    (
        "remember",
        False,
        r"(?:lütfen\s+)?(?P<what>.*?)(?:\s+olduğunu|,?\s+bunu)?\s*\b(?:unutma(?:yın)?|aklında\s+tut|hatırla(?:yın)?|(?:unutma|hatırla)man(?:[ıi]z)?[ıi]\s+ist\S+)(?:\s+lütfen)?",
    ),
    (
        "forget",
        True,
        r"(?:lütfen\s+)?(?P<what>.+?)(?:\s+hakkında(?:ki)?(?:\s+\S+){0,2}|\s+olduğunu)?,?\s+"
        r"unut(?:un|unuz|ur\s+mus\S+|abilir\s+mi\S+|sana|man(?:[ıi]z)?[ıi]\s+ist\S+)?(?:\s+lütfen)?",
    ),
)
"""Each with whether a question may be one."""
_VERB_LAST_LETTERS = re.compile(
    "[\u0900-\u097f\u1100-\u11ff\u3000-\uffff]|unut|hatırla|hafız|aklında", re.IGNORECASE
)
"""One of these is in every such request, and in few other texts."""
_LAST = tuple(
    (kind, may_ask, re.compile(pattern + _END, re.IGNORECASE | re.DOTALL))
    for kind, may_ask, pattern in _VERB_LAST
)


def read_verb_last(text: str) -> tuple[Kind | None, str]:
    """Return what is asked for and what it is about; (None, "") where it is no such request."""
    if not _VERB_LAST_LETTERS.search(text):
        return None, ""
    is_question = text.endswith(("?", "？", "؟"))
    for kind, may_ask, pattern in _LAST:
        match = pattern.fullmatch(text)
        if match is not None:
            return (None, "") if is_question and not may_ask else (kind, match["what"])
    return None, ""
