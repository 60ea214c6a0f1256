"""Recognises messages that need no recall: thanks, greetings, and commands without a subject to look up.

"Write me a poem" is such a command; "write me a poem about my violin" is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory.language.languages import (
    QUESTION_MARKS,
    UNSPACED_RUN,
    fold_text,
    latin_language,
    stop_words,
    stop_words_of,
    unspaced_language,
)

_SMALL_TALK = """
    thanks thank hi hey hello bye ok okay yes yeah please sorry great cool nice good fine perfect sure lot welcome
    morning wow idea think danke dank hallo bitte guten merci bonjour salut plait gracias hola grazie ciao obrigado
    bedankt спасибо привет شكرا مرحبا tesekkurler merhaba धन्यवाद नमस्ते 谢谢 感谢 你好 好的 早上好 ありがと おはよう
    こんにちは はい 감사합니다 안녕하세요 네
"""
SMALL_TALK = frozenset(_SMALL_TALK.split())
"""Words of messages that ask nothing. In a question they count."""

_HOW_ARE_YOU = re.compile(
    r"\b(?:how are you|how(?:['’]?s| is) it going|what(?:['’]?s| is) up|"
    r"wie geht(?:['’]| e)?s(?: dir| euch| ihnen)?|como estas?|que tal|"
    r"comment (?:ca va|vas[ -]tu|allez[ -]vous)|ca va|come (?:stai|sta|va)|como vai|tudo bem|"
    r"hoe gaat het(?: met (?:je|jou|u))?|как дела|كيف حالك|nasilsin(?:iz)?)\b|"
    r"(?:आप|तुम) कैसे (?:हैं|हो)|你好吗|お元気ですか|(?:잘|어떻게) 지내(?:세요|니)?"
)
"""Greetings in the form of a question."""

_PARTS_OF_DAYS = """
    evening afternoon night tomorrow abend nacht tag soir nuit demain tardes noches manana sera notte domani tarde noite
    amanha avond nacht middag aksam aksamlar gece geceler yarin вечер ночь ночи завтра शुभ संध्या रात्रि مساء غدا 晚上 下午
    中午 早安 晚安 明天 今晩 明日 저녁 밤 내일
"""
_TIMES_OF_GREETINGS = frozenset(_PARTS_OF_DAYS.split())
"""Words of greetings and farewells such as "good evening". Beside other words they are times."""
_HELP = "help hilf helf aide ayud puedes aiut puoi ajud помо можеш yardim مساعد मदद 帮 手伝 助け 도와 주실 수 있나"
_MAKE = """
    writ translat explain summar continu give poem joke story text example short schreib ubersetz erklar erzahl gedicht
    witz ecri tradui explique poeme escrib traduce explica poema cuenta scriv traduci poesia raccont escrev schrijf
    vertaal напиш перевед объясн стих اكتب ترجم قصيدة cevir siir लिखो कविता 写 诗 翻译 继续 書いて 翻訳 詩 続けて 써 시
    번역 계속 주세요 अनुवाद
"""
_HELPING, _MAKING = (tuple(words.split()) for words in (_HELP, _MAKE))
"""Beginnings of words that ask for help, or for something to be made. In a question the latter are its subject: "Which
poem did I write?"."""

EVERYDAY = """
    user assistant like love enjoy prefer live work use name call called ask asked say said tell told remember forget
    mention mentioned talk question answer thing time today day make take give think put keep new number is was
    favourite favorite
"""
"""Everyday words, which do not distinguish sentences."""

LONGEST_NAME = 3
"""Characters of a name in Chinese, or in Japanese with its suffix."""
MOST_WORDS_OF_A_GREETING = 2
"""Two words without content, e.g. "bom dia", ask nothing."""
MOST_WORDS_OF_A_FAREWELL = 3
_ASKS = re.compile(
    r"(?:(?:and|so|but|und|et|y|e|en|и|а) )?(?:who|what|whe(?:n|re)|which|how|do (?:i|you|we)|"
    r"wer|was|wo\w*|wann|wie|welche\w?|"
    r"qui|quoi|ou|quand|comment|quel\w*|quien\w*|donde|cuando|como|chi|dove|quando|quem|onde|qual\w?|wat|waar|wanneer|hoe|"
    r"кто|что|где|когда|как\w*|من|ما|ماذا|أين|متى)\b|.*(?:谁|誰|什么|哪|几|多少|何|どこ|いつ|누구|뭐|어디)"
)
"""How a question begins; in scripts without spaces, what it contains."""
_CLAUSES = re.compile(r"[,.!;:\n、，。！；：،؛।]+")
_NO_LETTERS = re.compile(r"[\W_]+")
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963])+")


def _phrases(words: Iterable[str]) -> re.Pattern[str]:
    # An alternation takes the first match, so put the longest first.
    return re.compile("|".join(sorted(filter(UNSPACED_RUN.match, words), key=len, reverse=True)))


_GREETINGS = _phrases(SMALL_TALK)
_ASKING_PHRASES = _phrases((*SMALL_TALK, *_HELPING))
_PHRASES = _phrases((*SMALL_TALK, *_HELPING, *_MAKING, *_TIMES_OF_GREETINGS))


def is_courtesy(text: str) -> bool:
    """Return whether the text is only small talk, a call for help or a command without a subject, or has no words."""
    return _is_courtesy(text) and all(map(_is_courtesy, _questions_in(text)))


def _questions_in(text: str) -> Iterator[str]:
    """Yield the clauses that ask, without a leading greeting, which must not hide the question: "Hi, who am I?". The
    question mark may be missing: "Hi who am I"."""
    folded = _HOW_ARE_YOU.sub(" hello ", fold_text(text))
    for clause in _CLAUSES.split(folded):
        rest = _behind_greeting(clause)
        is_marked = any(mark in clause for mark in QUESTION_MARKS)
        if is_marked or (len(rest) < len(folded) and _ASKS.match(rest)):
            yield f"{rest}?"


def _behind_greeting(clause: str) -> str:
    """Return a folded clause without its leading greetings; the whole clause if only one word would remain."""
    start = 0
    for word in _WORD.finditer(clause):
        if word[0] not in SMALL_TALK:
            break
        start = word.end()
    rest = clause[start:].strip()
    # In scripts without spaces a greeting is not a separate word.
    if greeting := _GREETINGS.match(rest):
        return rest[greeting.end() :]
    return rest if " " in rest else clause


def _is_courtesy(text: str) -> bool:
    folded = fold_text(text)
    # Before greetings are replaced, because they indicate the language, too.
    language = latin_language(_WORD.findall(folded))
    folded = _HOW_ARE_YOU.sub(" hello ", folded)
    asks = any(mark in text for mark in QUESTION_MARKS)
    phrases, beginnings = (_ASKING_PHRASES, _HELPING) if asks else (_PHRASES, (*_HELPING, *_MAKING))
    runs = UNSPACED_RUN.findall(folded)
    words = _WORD.findall(UNSPACED_RUN.sub(" ", folded))
    known = {word for word in words if word in SMALL_TALK or word.startswith(beginnings)}
    if not asks and len(words) <= MOST_WORDS_OF_A_FAREWELL:
        known |= _TIMES_OF_GREETINGS.intersection(words)
    others = [word for word in words if word not in known and word not in stop_words_of(word, language)]
    if others or any(_tells(rest) for run in runs for rest in phrases.sub(" ", run).split()):
        return False
    is_little = not asks and len(words) <= MOST_WORDS_OF_A_GREETING and not runs
    return bool(known) or any(map(phrases.search, runs)) or not (words or runs) or is_little


def greets_by_name(text: str) -> bool:
    """Return whether the text greets by name in a script without spaces, where a name is not a separate word."""
    rest, greetings = _GREETINGS.subn("", fold_text(text))
    return greetings > 0 and len(_NO_LETTERS.sub("", rest)) <= LONGEST_NAME


def _tells(rest: str) -> bool:
    """Return whether the rest of a run has content: two characters that are neither stop words nor hiragana."""
    stops = stop_words(unspaced_language(rest))
    content = [one for one in rest if one not in stops and not "\u3040" <= one <= "\u309f"]
    return rest not in stops and len(content) > 1
