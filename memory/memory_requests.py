"""Reads requests to forget or to remember something, as people write them in a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.sentences import split_sentences

MAX_CHARS = 1_000
"""Longer messages tell something; a request is short."""

_POLITE = (
    r"(?:(?:please|pls|ok|okay|hey|and|now|so|can you|could you|would you|will you|i want you to|i'd like you to|"
    r"bitte|kannst du|s'il te plaît|por favor|per favore|alsjeblieft|kun je|пожалуйста|lütfen|من فضلك|कृपया)[,:،]?\s+)*"
)
_ENGLISH = (
    r"forget(?:\s+please)?\s+(?:that|about|everything\s+about|all\s+about|what\s+you\s+know\s+about|"
    r"what\s+i\s+(?:said|told\s+you|wrote|mentioned)(?:\s+(?:about|that))?|my|our)\s+(?P<what>.+)"
)
_GERMAN = (
    r"(?:vergiss|vergesst|vergessen\s+sie)(?:\s+bitte)?[,:]?\s+"
    r"(?:dass|alles\s+über|was\s+ich\s+(?:dir\s+)?über|mein\w*|unser\w*)\s+(?P<what>.+)"
)
_FRENCH = r"oublie[zs]?\s+(?:que\s+|qu'|tout\s+sur\s+|ce\s+que\s+j'ai\s+dit\s+(?:sur|de)\s+)(?P<what>.+)"
_SPANISH = r"olvid[ae]\s+(?:que|todo\s+sobre|lo\s+que\s+(?:te\s+)?dije\s+(?:sobre|de))\s+(?P<what>.+)"
_ITALIAN = r"dimentica(?:te)?\s+(?:che|tutto\s+su|quello\s+che\s+ti\s+ho\s+detto\s+(?:su|di))\s+(?P<what>.+)"
_PORTUGUESE = r"esque(?:ça|ce)\s+(?:que|tudo\s+sobre|o\s+que\s+eu\s+disse\s+(?:sobre|de))\s+(?P<what>.+)"
_DUTCH = r"vergeet\s+(?:dat|alles\s+over|wat\s+ik\s+zei\s+over|mijn|onze?)\s+(?P<what>.+)"
_RUSSIAN = (
    r"забудь(?:те)?,?\s+(?:что|про|об?|всё\s+об?|все\s+об?|то,?\s+что\s+я\s+говорила?\s+об?)\s+(?P<what>.+)"
)
_ARABIC = r"انس[َى]?\s+(?:أنّ?(?:ني|نا|ه|ها)?\s+|كل\s+شيء\s+عن\s+|ما\s+قلته\s+عن\s+)(?P<what>.+)"
_CHINESE = (
    r"(?:请|請|麻烦|你)*(?:忘记|忘掉|忘記)(?:关于|關於|我说过的?|我告诉你的)?[，,：:\s]*"
    r"(?P<what>.+?)(?:的事情?)?吧?"
)
_CHINESE_OBJECT = r"(?:请|請|麻烦|你)*把(?P<what>.+?)(?:的事情?)?(?:忘了|忘掉|忘记|忘記)吧?"
_JAPANESE = (
    r"(?P<what>.+?)(?:という)?(?:のこと|こと|の件)?(?:について)?(?:を|は)?"
    r"忘れて(?:ください|下さい|くれ|ほしい|欲しい)?ね?"
)
_KOREAN = r"(?P<what>.+?)(?:에\s*대해서?|다는\s*(?:것|걸|사실)[을를]?|[을를은는])?\s*잊어\s*(?:줘|주세요|줄래|버려)?요?"
_HINDI = r"(?P<what>.+?)(?:\s+को|\s+के\s+बारे\s+में)?\s+भूल\s+(?:जाओ|जाइए|जाइये|जाएँ|जाना)"
_TURKISH = r"(?P<what>.+?)(?:\s+hakkındaki\s+her\s+şeyi|\s+olduğunu)?,?\s+unut(?:un|unuz)?"
_BARE = (
    r"(?:forget|vergiss|vergesst|oublie[zs]?|olvid[ae]|dimentica(?:te)?|esque(?:ça|ce)|vergeet|забудь(?:те)?|انس[َى]?)"
    r"\s+(?:bitte\s+)?(?!(?:not|nicht|pas|no|non|não|niet|не)\b)(?P<what>[^,;:?\n،]{2,60})"
)
"""A name or a thing and no more: who goes on behind a comma changes the subject."""
_COMMAND = r"/forget\s+(?P<what>.+)"
_END = r"[\s.!。！।]*"
_FORGET = tuple(
    re.compile(pattern + _END, re.IGNORECASE | re.DOTALL)
    for pattern in (
        _COMMAND,
        *(
            _POLITE + request
            for request in (
                *(_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _RUSSIAN, _ARABIC),
                *(_CHINESE, _CHINESE_OBJECT, _JAPANESE, _KOREAN, _HINDI, _TURKISH, _BARE),
            )
        ),
    )
)
_FOR_GOOD = re.compile(
    r"[,\s]*(?:\b(?:and\s+)?(?:for\s+good|for\s*ever|(?:and\s+)?never\s+remember\s+it(?:\s+again)?|für\s+immer|"
    r"pour\s+toujours|para\s+siempre|per\s+sempre|para\s+sempre|voor\s+altijd|навсегда|sonsuza\s+kadar))[.!\s]*$",
    re.IGNORECASE,
)
_NEVER = re.compile(
    rf"{_POLITE}(?:never|don't\s+ever|do\s+not\s+ever)\s+remember(?:\s+that)?\s+(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_THAT = r"(?:that\s+|dass\s+|que\s+|qu'|de\s+que\s+|che\s+|dat\s+|что\s+|أنّ?(?:ني|نا|ه|ها)?\s+|कि\s+|ki\s+)?"
_REMEMBER = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"{_POLITE}(?:(?:do\s+)?remember|keep\s+in\s+mind|don't\s+forget|do\s+not\s+forget|"
        r"merke?n?\s+(?:dir|sie\s+sich)|vergiss\s+nicht|souviens-toi|souvenez-vous|retiens|n'oublie[zs]?\s+pas|"
        r"recuerda|no\s+olvides|ricorda(?:ti)?|tieni\s+a\s+mente|non\s+dimenticare|lembre-se|lembra-te|"
        r"não\s+(?:se\s+)?esqueça|onthoud|vergeet\s+niet|запомни(?:те)?|помни(?:те)?|не\s+забудь(?:те)?|"
        r"(?:تذكّ?ر|لا\s+تنس[َى]?)(?=[\s،:])|(?:请|請|你)*(?:记住|記住|别忘了|別忘了|不要忘记)|"
        r"覚えて(?:おいて)?(?:ください|ね)?(?=[:：、])|기억해\s*(?:줘|주세요)?(?=[:,：])|"
        r"याद\s+(?:रखो|रखना|रखिए|रखें)|unutma(?:yın)?|hatırla|aklında\s+tut)"
        rf"(?:\s+bitte)?[,:：，،、]?\s*{_THAT}(?P<what>.+)",
        r"(?P<what>.+?)(?:という|と)?(?:こと|の)?(?:を|は)?(?:覚えて|忘れないで)(?:おいて)?(?:ください|下さい|ね)?[。！!]*",
        r"(?P<what>.+?)(?:라는|(?<=다)는)?\s*(?:것|걸|사실)?[을를]?\s*기억해\s*(?:줘|주세요|둬)?요?[.!]*",
        r"(?P<what>.+?),?\s*(?:यह\s+)?याद\s+(?:रखो|रखना|रखिए|रखें)[।.!]*",
        r"(?P<what>.+?)(?:\s+olduğunu|,?\s+bunu)?\s+(?:unutma|aklında\s+tut|hatırla)[.!]*",
    )
)
_NOTHING = re.compile(
    r"(?:it|this|that|about it|everything|all|es|das|alles|ça|todo|eso|lo|questo|tutto|isso|tudo|het|dat|это|всё|все|"
    r"هذا|ذلك|它|这|这个|那个|これ|それ|全部|이거|그거|इसे|यह|bunu|onu|her şeyi)?[\s.!?]*",
    re.IGNORECASE,
)


def read_forget_request(text: str) -> str | None:
    """Return what is to be forgotten; None where the text is no such request, or does not say what."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        return None
    for pattern in (*_FORGET, _NEVER):
        match = pattern.fullmatch(text)
        if match is not None:
            what = _FOR_GOOD.sub("", match["what"].strip()).rstrip(" .!?。！？।")
            return None if _NOTHING.fullmatch(what) else what
    return None


def is_for_good(text: str) -> bool:
    """Return whether a request says that it is never to be remembered, even when it is asked for again."""
    text = text.strip()
    return _NEVER.fullmatch(text) is not None or _FOR_GOOD.search(text) is not None


def read_remember_requests(text: str) -> Iterator[str]:
    """Yield what a message asks to remember, by sentence: `I live in Paris.` of `Remember that I live in Paris.`"""
    for sentence in split_sentences(text):
        if len(sentence) > MAX_CHARS or sentence.rstrip().endswith(("?", "？", "؟")):
            continue
        for pattern in _REMEMBER:
            match = pattern.fullmatch(sentence.strip())
            if match is not None:
                yield match["what"].strip()
                break
