from datetime import date

import pytest

from memory.language.terms import Analyzer, split_speaker
from memory.recall.date_spans import DateSpan
from memory.recall.dates import Dates, find_dates
from memory.recall.passages import split_passages
from memory.recall.questions import QuestionReader
from memory.recall.sessions import find_session

ANALYZER = Analyzer()
QUESTIONS = QuestionReader(ANALYZER)
TODAY = date(2026, 11, 21)


def share_a_term(query: str, text: str) -> bool:
    return bool(set(ANALYZER.words(query)) & set(ANALYZER.document_terms(text)))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("planting", "We planted a tree"),
        ("CAFÉ", "the cafe on the corner"),
        ("Ｆｕｌｌ", "full width"),
        ("東京", "私は東京に住んでいます"),
        ("北京", "我住在北京的一条胡同里"),
        ("서울", "저는 서울에 살아요"),
        ("ORD-2024-17", "order ord-2024-17 was late"),
        ("2024", "order ord-2024-17 was late"),
        ("foo.bar@example.com", "write to Foo.Bar@example.com"),
        ("Melanie's", "I met Melanie"),
        ("straße", "die STRASSE ist nass"),
    ],
)
def test_matching_words_share_a_term(query: str, text: str):
    assert share_a_term(query, text)


@pytest.mark.parametrize(
    ("query", "text"), [("the", "the end"), ("京都", "東京に都があった"), ("17", "1789")]
)
def test_other_words_share_no_term(query: str, text: str):
    assert not share_a_term(query, text)


def test_the_speaker_is_read_from_the_beginning():
    assert split_speaker("Ann Lee: hello") == (("ann", "lee"), "hello")
    assert split_speaker("note: buy milk") == ((), "note: buy milk")
    assert split_speaker("See https://example.com") == ((), "See https://example.com")


def test_hostile_texts_give_terms_of_limited_length():
    terms = ANALYZER.document_terms("a" * 100_000 + " " + "x-" * 50_000 + "\ud800")
    assert max(map(len, terms)) <= 64


def asks_for(question: str, text: str) -> bool:
    return bool(QUESTIONS.read(question, TODAY).own & set(ANALYZER.document_terms(text)))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("the third one?", "Plan 3: grow plums"),
        ("The seventh?", "It is my 7th visit"),
        ("le troisième ?", "Étage 3 : les archives"),
        ("huitième ?", "la 8ème porte"),
        ("Der dritte?", "Raum 3 ist frei"),
        ("im vierten?", "4. Stock"),
        ("¿Tercera?", "la 3ª puerta"),
        ("Il settimo?", "Capitolo 7"),
        ("de vijfde?", "Halte 5"),
        ("محمد؟", "اشتريت هدية لمحمد"),
        ("لسارة؟", "هذا كتاب سارة"),
        ("المدرسة؟", "الحديقة والمدرسة"),
        ("والسوق؟", "ذهبت إلى السوق"),
    ],
)
def test_a_question_matches_numbers_and_prefixed_words(question: str, text: str):
    assert asks_for(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When did I first meet Ann?", "1 egg"),
        ("¿De qué color es mi cuarto?", "4 sillas"),
        ("Soll ich auf die Kosten achten?", "8 Euro"),
        ("بن؟", "شربت لبن"),
    ],
)
def test_words_that_only_look_like_ordinals_or_prefixed_words_do_not_match(question: str, text: str):
    assert not asks_for(question, text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "ok great, thank you so much",
        "Hi!",
        "yes please go on",
        "👍",
        "",
        "thanks a lot, that helped!",
        "Any idea?",
        "Can you help me?",
        "Write me a poem",
        "please write me a short story",
        "Tell me a joke!",
        "Summarize this text, please.",
        "Give me another example",
        "What do you think?",
        "Danke schön!",
        "Kannst du mir helfen?",
        "Schreib mir ein Gedicht",
        "Erzähl mir bitte einen Witz",
        "Merci beaucoup !",
        "Peux-tu m'aider ?",
        "Écris-moi un poème, s'il te plaît",
        "¿Puedes ayudarme?",
        "Escríbeme un poema",
        "Muchas gracias",
        "Puoi aiutarmi?",
        "Scrivimi una poesia",
        "Obrigado!",
        "Você pode me ajudar?",
        "Kun je me helpen?",
        "Спасибо!",
        "Ты можешь мне помочь?",
        "Напиши стихотворение",
        "谢谢！",
        "非常感谢！",
        "你能帮我吗？",
        "给我写一首诗",
        "ありがとうございます。",
        "おはようございます",
        "See you later",
        "You're so kind",
        "Encore une fois",
        "Non fa niente",
        "わかりました",
        "手伝ってくれますか？",
        "詩を書いてください",
        "감사합니다!",
        "도와주실 수 있나요?",
        "시 하나 써줘",
        "Good evening!",
        "See you tomorrow!",
        "Guten Abend",
        "¡Hasta mañana!",
        "晚上好！",
        "明天见！",
        "How are you?",
        "Hi, how are you?",
        "Hi how are you?",
        "hey how's it going",
        "Thank you so very much for that",
        "Please can you help me?",
        "ok I will do that",
        "Hello there?",
        "Bonjour comment allez-vous ?",
        "Привет как дела?",
        "你好你好吗？",
        "Hello! Can you help me, please?",
        "Wie geht es dir?",
        "Hallo, wie geht es dir?",
        "你好，你好吗？",
        "Wie geht's?",
        "¿Cómo estás?",
        "Comment ça va ?",
        "Come stai?",
        "Tudo bem?",
        "Hoe gaat het met je?",
        "Как дела?",
        "كيف حالك؟",
        "Nasılsın?",
        "आप कैसे हैं?",
        "你好吗？",
        "お元気ですか？",
        "잘 지내세요?",
    ],
)
def test_small_talk_is_recognised(text: str):
    assert QUESTIONS.read(text, TODAY).is_small_talk


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! And my dog's name?",
        "Hi, what's my name?",
        "Hi what's my name?",
        "Hi who am I",
        "Hi, who am I",
        "ok so where do I work",
        "good morning what is my name?",
        "Hallo wer bin ich",
        "Bonjour qui suis-je",
        "Hola quién soy",
        "Ciao dove sono",
        "obrigado onde estou?",
        "Bedankt waar ben ik",
        "спасибо а кто я",
        "Merhaba adım ne",
        "مرحبا من أنا",
        "नमस्ते मेरा नाम क्या है",
        "你好我叫什么",
        "ありがとう私は誰",
        "안녕하세요 제 이름이 뭐예요",
        "Hello! Who am I?",
        "Thanks. Where did we go?",
        "Hallo, wer bin ich?",
        "Danke! Was mag ich?",
        "Bonjour, qui suis-je ?",
        "Merci, c'était qui ?",
        "Hola, ¿quién soy?",
        "你好，我叫什么？",
        "谢谢，他是谁？",
        "こんにちは、私は誰ですか？",
        "what did we say yesterday?",
        "where do i work",
        "Where do I work?",
        "wie alt bin ich",
        "¿Quién soy?",
        "東京",
        "4711",
        "What was the poem about?",
        "Which poem did I write?",
        "What is the code?",
        "Write me a poem about Biscuit",
        "Help me with my taxes",
        "Tell me her name",
        "Schreib an Greta",
        "¿Qué poema escribí?",
        "写一首关于猫的诗",
        "Schreib mir ein Gedicht über meinen Hund",
        "Wie heißt meine Schwester?",
        "¿Cómo se llama mi perro?",
        "帮我找一下我的钥匙",
        "感谢信写给谁了？",
        "私の犬の名前は？",
        "우리 강아지 이름이 뭐야?",
        "Wie geht es meiner Schwester?",
        "¿Qué tal el museo?",
        "Как дела у Кати?",
        "How are you going to fix my roof?",
        "Tomorrow evening?",
        "dinner with Ann tomorrow evening",
    ],
)
def test_a_question_or_request_with_a_subject_is_not_small_talk(text: str):
    assert not QUESTIONS.read(text, TODAY).is_small_talk


def test_a_question_includes_irregular_forms_of_its_words():
    assert {*ANALYZER.words("write wrote")} <= QUESTIONS.read("What did I write?", TODAY).own
    assert {*ANALYZER.words("find found")} <= QUESTIONS.read("What did I find?", TODAY).own


@pytest.mark.parametrize(
    "text",
    [
        "Which rose did I plant?",
        "Did I turn left?",
        "Where is my ring?",
        "Which saw do I own?",
        "Who founded the firm?",
        "Is the hat of felt?",
        "What is the mean?",
        "A bit of advice?",
        "Which LED lamp fits?",
        "Where does Drew live?",
        "When am I free, Sat or Sun?",
    ],
)
def test_an_ambiguous_word_has_no_other_forms(text: str):
    assert QUESTIONS.read(text, TODAY).forms == {}


@pytest.mark.parametrize("text", ["What about Said?", 'The book by "Kept"?', "Is it far? Yes, Met knows."])
def test_a_name_has_no_other_forms(text: str):
    assert QUESTIONS.read(text.lower(), TODAY).forms.keys() & {*ANALYZER.words("said kept met")}
    assert not QUESTIONS.read(text, TODAY).forms.keys() & {*ANALYZER.words("said kept met")}


def test_a_capitalised_first_word_of_a_sentence_is_not_a_name():
    assert QUESTIONS.read("Made it. Drove home?", TODAY).forms.keys() == {*ANALYZER.words("made drove")}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("Which bread does she bake?", "bread bake"),
        ("¿Qué panadería tiene mi prima?", "panaderia prima"),
        ("Welches Buch hast du mir empfohlen?", "buch empfohlen"),
        ("Какую книгу ты посоветовал?", "книгу посоветовал"),
        ("मेरी बहन क्या करती है?", "बहन"),
        ("أين كسرت القطة المزهرية؟", "كسرت القطة المزهرية"),
        ("我喜欢什么音乐？", "音乐"),
        ("どの映画をおすすめしましたか？", "映画"),
        ("어떤 영화를 봤나요?", "영화"),
    ],
)
def test_question_words_are_not_part_of_the_subject(text: str, about: str):
    assert {*QUESTIONS.read(text, TODAY).telling} >= {*ANALYZER.words(about)}
    assert not {*QUESTIONS.read(text, TODAY).telling} & {
        *ANALYZER.words("Qué Welches mir ты क्या أين 什么 어떤")
    }


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("on March 16, 2022?", date(2022, 3, 16), date(2022, 3, 16)),
        ("on 16th of March 2022", date(2022, 3, 16), date(2022, 3, 16)),
        ("2022-03-16", date(2022, 3, 16), date(2022, 3, 16)),
        ("2022年3月16日", date(2022, 3, 16), date(2022, 3, 16)),
        ("on December 24", date(2025, 12, 24), date(2025, 12, 24)),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31)),
        ("in december 2023", date(2023, 12, 1), date(2023, 12, 31)),
        ("what happened in July?", date(2026, 7, 1), date(2026, 7, 31)),
        ("during 2021", date(2021, 1, 1), date(2021, 12, 31)),
        ("yesterday", date(2026, 11, 20), date(2026, 11, 20)),
        ("last week", date(2026, 11, 9), date(2026, 11, 15)),
        ("last month", date(2026, 10, 1), date(2026, 10, 31)),
        ("last Friday", date(2026, 11, 20), date(2026, 11, 20)),
        ("two weeks ago", date(2026, 11, 4), date(2026, 11, 10)),
        ("last year", date(2025, 1, 1), date(2025, 12, 31)),
    ],
)
def test_a_date_in_a_question_is_resolved(question: str, first: date, last: date):
    span = find_dates(question, TODAY).resolve(())[0]
    assert (span.first, span.last) == (first, last)


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("5月2日に何を話しましたか？", date(2026, 5, 2)),
        ("我在5月2号说了什么？", date(2026, 5, 2)),
        ("十月二十三号我说了什么？", date(2026, 10, 23)),
        ("2025年5月2号", date(2025, 5, 2)),
        ("10월 3일에 무엇을 샀나요?", date(2026, 10, 3)),
        ("Was habe ich am 3. Oktober gekauft?", date(2026, 10, 3)),
        ("Was war am 3.10.?", date(2026, 10, 3)),
        ("¿Qué compré el 3 de octubre?", date(2026, 10, 3)),
        ("Qu'ai-je acheté le 11 août 2025 ?", date(2025, 8, 11)),
        ("Cosa ho comprato il 3 ottobre?", date(2026, 10, 3)),
        ("O que comprei em 3 de outubro?", date(2026, 10, 3)),
        ("Wat kocht ik op 3 oktober?", date(2026, 10, 3)),
        ("Что я купил 3 октября?", date(2026, 10, 3)),
        ("ماذا أخبرتك في 21 سبتمبر؟", date(2026, 9, 21)),
        ("11 अगस्त को क्या हुआ?", date(2026, 8, 11)),
        ("21 Eylül'de ne anlattım?", date(2026, 9, 21)),
        ("Was habe ich gestern gesagt?", date(2026, 11, 20)),
        ("Was habe ich vorgestern gesagt?", date(2026, 11, 19)),
        ("¿Qué dije ayer?", date(2026, 11, 20)),
        ("Qu'ai-je dit avant-hier ?", date(2026, 11, 19)),
        ("Что я сказал вчера?", date(2026, 11, 20)),
        ("前天我说了什么？", date(2026, 11, 19)),
        ("昨日は何を話しましたか？", date(2026, 11, 20)),
        ("그저께 뭐라고 했지?", date(2026, 11, 19)),
        ("Dün ne dedim?", date(2026, 11, 20)),
        ("ماذا قلت أمس؟", date(2026, 11, 20)),
        ("三天前我说了什么？", date(2026, 11, 18)),
    ],
)
def test_a_day_is_understood_in_every_language(question: str, day: date):
    span = find_dates(question, TODAY).resolve(())[0]
    assert (span.first, span.last) == (day, day)


@pytest.mark.parametrize(
    "question",
    [
        "Was sagte ich letzte Woche?",
        "上周我说了什么？",
        "¿Qué dije la semana pasada?",
        "지난주에 뭐라고 했지?",
    ],
)
def test_last_week_is_understood_in_every_language(question: str):
    [span] = find_dates(question, TODAY).resolve(())
    assert (span.first, span.last) == (date(2026, 11, 9), date(2026, 11, 15))


def test_a_day_without_a_year_is_the_latest_such_day_with_turns():
    dates = find_dates("What did I say on May 4th?", TODAY)
    assert dates.resolve({date(2023, 5, 4), date(2021, 5, 4)})[0].first == date(2023, 5, 4)
    assert dates.resolve(())[0].first == date(2026, 5, 4)


@pytest.mark.parametrize(
    "question", ["Set 3 alarms", "Did Mar eat 3 apples?", "5 min ago", "Was ist 3 mal 4?"]
)
def test_a_number_beside_a_word_is_no_date(question: str):
    assert not find_dates(question, TODAY).days


@pytest.mark.parametrize(
    ("question", "session"),
    [
        ("What was our first conversation about?", "first"),
        ("Worum ging es in unserem ersten Gespräch?", "first"),
        ("¿De qué trató nuestra primera conversación?", "first"),
        ("De quoi avons-nous parlé la première fois ?", "first"),
        ("我们第一次聊天说了什么？", "first"),
        ("最初の会話は何でしたか？", "first"),
        ("우리의 첫 대화는 뭐였지?", "first"),
        ("О чём был наш первый разговор?", "first"),
        ("İlk sohbetimiz ne hakkındaydı?", "first"),
        ("What did we talk about last time?", "last"),
        ("Worüber haben wir das letzte Mal gesprochen?", "last"),
        ("¿De qué hablamos la última vez?", "last"),
        ("上次我们聊了什么？", "last"),
        ("前回は何を話しましたか？", "last"),
        ("지난번에 무슨 이야기를 했지?", "last"),
        ("О чём мы говорили в прошлый раз?", "last"),
        ("Worüber haben wir zuerst gesprochen?", "first"),
        ("Sobre o que falamos na primeira vez?", "first"),
        ("Waar hadden we het de eerste keer over?", "first"),
        ("हमारी पहली बातचीत किस बारे में थी?", "first"),
        ("我们最开始聊的是什么？", "first"),
        ("What did we discuss last time?", "last"),
        ("Was haben wir zuletzt besprochen?", "last"),
        ("Waar spraken we de vorige keer over?", "last"),
        ("पिछली बार हमने क्या बात की थी?", "last"),
        ("最後の会話は？", "last"),
        ("When did I last talk to my mother?", None),
        ("我上次跟妈妈聊天是什么时候？", None),
        ("What happened in the first parliament?", None),
        ("When did I last see the dentist?", None),
        ("Who won the first prize?", None),
    ],
)
def test_the_first_and_the_last_conversation_are_understood(question: str, session: str | None):
    assert find_session(question) == session


@pytest.mark.parametrize("question", ["who may join the march?", "9999-12-31 x", "room 2022b", ""])
def test_what_is_no_date_is_ignored(question: str):
    assert find_dates(question, TODAY) == Dates()


def test_a_day_that_does_not_exist_leaves_its_year():
    assert find_dates("February 31, 2023", TODAY).spans == (
        DateSpan(date(2023, 1, 1), date(2023, 12, 31), 0.5),
    )


def test_pieces_add_up_to_the_text():
    text = (
        "First paragraph. It has sentences.\n\n"
        + "Second one is long. " * 200
        + "長い文。" * 400
        + "x" * 3_000
    )
    pieces = split_passages(text, 300)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert max(end - start for start, end in pieces) <= 300
    assert split_passages(" \n ") == []
