"""Recognises messages that need no recall: thanks, greetings, and requests that bring their whole subject.

"Write me a poem" is such a request; "what was the poem?" is not.
"""

from __future__ import annotations

import re

from memory.terms import STOP_WORDS, UNSPACED_RUN, fold_text

_SMALL_TALK = """
    thanks thank thx cheers hi hey hello bye goodbye ok okay yes yeah yep nope please sorry great cool nice good fine
    awesome perfect wow lol haha sure well right welcome morning evening night continue go ahead got let see know tell
    want need much really help helps helped helping helpful understood lot lots bunch think idea ideas point true agree
    agreed exactly interesting wait oh hmm wonderful amazing super appreciate appreciated wish
"""
SMALL_TALK = frozenset(_SMALL_TALK.split())
"""Words of messages that ask nothing; in a question they still count."""

_REQUESTING = """
    write rewrite draft compose make create generate give show explain describe define translate summarize summarise
    shorten expand improve fix correct check compare list repeat rephrase paraphrase elaborate convert calculate
    refactor proofread
"""
REQUESTING = frozenset(_REQUESTING.split())
"""Words that begin a message that wants something done."""

_REQUESTED_THINGS = """
    answer reply say try poem haiku story joke riddle example examples text sentence sentences paragraph word
    words email letter essay song table step steps detail details summary translation version code program
    function script bug error question questions something anything everything else thing way short shorter long
    longer simple simpler better another different next new clear clearly brief briefly fun funny random english
    german french spanish italian chinese japanese favor favour yourself
"""
REQUESTED = frozenset(_REQUESTED_THINGS.split())
"""Things such a message often wants, and how."""

EVERYDAY = """
    user assistant like love enjoy prefer live work use name call called ask asked say said tell told remember forget
    mention mentioned talk question answer thing time today day make take give think put keep new number is was
    favourite favorite
"""
"""Words of everyday sentences, which tell none apart."""

_ASKS_WHAT_IS = """
    i my mine myself we our ours us did was were had been before once who whose when where which what how why is are
    there the that those
"""
_REQUEST_WORDS = SMALL_TALK | REQUESTING | REQUESTED | (STOP_WORDS - frozenset(_ASKS_WHAT_IS.split()))

# One language a paragraph, accents folded as `fold_text` does, without words that ask what is or was.
_ELSEWHERE = """
danke dank vielen herzlichen schon schonen bitte hallo hi ja nein doch gut gute guten morgen tag abend nacht
ok okay toll super prima klar alles genau stimmt tschuss kannst konntest konnen konnten du sie mir uns mich
helfen hilf hilfe weiter mach mache schreib schreibe erzahl erzahle erklar erklare ubersetz ubersetze fass
fasse zusammen gib gibt zeig zeige ein eine einen das die den dies es auf ins in deutsch englisch gedicht
witz geschichte beispiel text brief kurz kurzer langer besser was meinst denkst wie geht noch etwas bisschen
sehr verstanden

merci beaucoup bien bonjour bonsoir salut bonne nuit journee oui non ok d accord parfait super genial s il
te vous plait tu peux pouvez pourrais pourriez m me nous aider aide moi ecris ecrivez raconte racontez
explique expliquez traduis traduisez resume resumez donne donnez continue continuez un une le la les ce cela
ca en francais anglais poeme blague histoire exemple texte lettre plus court long qu que penses comment va
vas au revoir tres compris

gracias muchas hola buenos buenas dias tardes noches si no vale ok perfecto genial claro por favor puedes
puede podrias podria me nos ayudar ayudarme ayudame ayuda escribe escribeme escriba cuenta cuentame explica
explicame traduce resume dame continua sigue un una el la los eso esto en al espanol ingles poema chiste
historia ejemplo texto carta mas corto largo que piensas opinas como estas adios muy bien entendido

grazie mille ciao buongiorno buonasera buonanotte si no ok perfetto va bene certo per favore prego puoi puo
potresti mi ci aiutare aiutarmi aiutami aiuto scrivi scrivimi racconta raccontami spiega spiegami traduci
riassumi dammi continua un una uno il lo la questo in italiano inglese poesia barzelletta storia esempio
testo lettera piu breve lungo che cosa ne pensi come stai arrivederci molto capito

obrigado obrigada muito ola oi bom boa dia tarde noite sim nao ok perfeito otimo claro por favor voce pode
poderia podes me nos ajudar ajude ajuda escreva escreve conte conta explique explica traduza traduz resuma
resume continue continua um uma o a isso isto em para portugues ingles poema piada historia exemplo texto
carta mais curto longo que acha pensas como vai tchau bem entendi

dank je u wel bedankt hallo hoi goedemorgen goedenavond ja nee ok oke prima goed super natuurlijk
alsjeblieft alstublieft kun kan kunt kunnen zou jij mij me ons helpen help hulp schrijf vertel leg uit
vertaal vat samen geef ga door verder een de het dit dat in nederlands engels gedicht grap mop verhaal
voorbeeld tekst brief korter langer wat vind denk hoe gaat doei

спасибо большое привет здравствуй здравствуйте добрый доброе день утро вечер да нет ок хорошо отлично
понятно ясно конечно пожалуйста ты вы можешь можете мне нам помочь помоги помогите помощь напиши напишите
расскажи расскажите объясни объясните переведи переведите сократи продолжай дальше это на в русский
английский стихотворение стих шутку анекдот историю пример текст письмо короче длиннее что думаешь как дела
пока очень
"""
_LANGUAGES = tuple(frozenset(paragraph.split()) for paragraph in _ELSEWHERE.split("\n\n"))

# Scripts without spaces: phrases, longest first, so that none is taken apart by a shorter one.
_PHRASES = """
    谢谢 謝謝 谢谢你 多谢 你好 您好 再见 好的 好 是的 对 不客气 早上好 晚安 没问题 明白了 请 继续 可以帮我吗
    你能帮我吗 能帮我吗 你可以帮我吗 帮帮我 帮我 写一首诗 给我写一首诗 写首诗 讲个笑话 给我讲个笑话 解释一下
    翻译一下 总结一下 举个例子 你觉得呢 怎么样 吗 吧 了 呢 ありがとう ありがとうございます
    ありがとうございました どうも こんにちは こんばんは おはよう おはようございます さようなら はい いいえ
    了解 了解です わかりました 分かりました すみません お願いします 続けて 手伝って 手伝ってください
    手伝ってくれますか 助けて 助けてください 手伝ってもらえますか 詩を書いて 詩を書いてください 冗談を言って
    説明して 説明してください 翻訳して 翻訳してください 要約して 要約してください 例を挙げて どう思いますか
    どう思う ください 감사합니다 고마워 고마워요 고맙습니다 안녕 안녕하세요 네 아니요 아니오 좋아요 좋아
    알겠습니다 알겠어요 부탁해요 부탁합니다 계속해 계속해줘 도와줘 도와주세요 도와줄 도와주실 수 있어 있어요
    있나요 있을까요 나를 저를 좀 시를 시 하나 써줘 써주세요 써 줘 주세요 농담 농담해줘 설명해줘 설명해주세요
    설명해 번역해줘 번역해주세요 번역해 요약해줘 요약해주세요 요약해 어떻게 생각해 생각해요
"""
_UNSPACED_PHRASES = re.compile("|".join(sorted(map(re.escape, _PHRASES.split()), key=len, reverse=True)))
_POLITE = SMALL_TALK | frozenset(
    ("can", "could", "would", "will", "you", "me", "now", "to", "i", "d", "like")
)
_WORD = re.compile(r"[^\W_]+")
_ELISION = re.compile(r"['’]")


def needs_no_memory(text: str) -> bool:
    """Return whether nothing in it could be asked of an earlier conversation."""
    folded = fold_text(text)
    runs = UNSPACED_RUN.findall(folded)
    if any(_UNSPACED_PHRASES.sub("", run) for run in runs):
        return False
    words = set(_WORD.findall(UNSPACED_RUN.sub(" ", _ELISION.sub(" ", folded))))
    if words <= SMALL_TALK | STOP_WORDS or words <= _REQUEST_WORDS:
        return True
    return any(words <= language for language in _LANGUAGES)


def is_request(text: str) -> bool:
    """Return whether something is to be done: "please explain …", not "what did she explain?"."""
    words = _WORD.findall(fold_text(text))
    return next((word in REQUESTING for word in words if word not in _POLITE), False)
