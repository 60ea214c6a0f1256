from datetime import date

import pytest
import snowballstemmer

from memory.dates import find_dates
from memory.passages import split_passages
from memory.questions import QuestionReader
from memory.terms import Analyzer, split_speaker

ANALYZER = Analyzer(snowballstemmer.stemmer("english").stemWord)
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
def test_these_meet(query: str, text: str):
    assert share_a_term(query, text)


@pytest.mark.parametrize(
    ("query", "text"), [("the", "the end"), ("京都", "東京に都があった"), ("17", "1789")]
)
def test_these_do_not_meet(query: str, text: str):
    assert not share_a_term(query, text)


def test_who_speaks_is_read_from_the_front():
    assert split_speaker("Ann Lee: hello") == (("ann", "lee"), "hello")
    assert split_speaker("note: buy milk") == ((), "note: buy milk")
    assert split_speaker("See https://example.com") == ((), "See https://example.com")


def test_hostile_texts_give_bounded_terms():
    terms = ANALYZER.document_terms("a" * 100_000 + " " + "x-" * 50_000 + "\ud800")
    assert max(map(len, terms)) <= 64


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
        "Could you explain this in simpler words?",
        "Summarize this text, please.",
        "Translate it to French",
        "Give me another example",
        "Try again.",
        "What do you think?",
        "How are you?",
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
        "你能帮我吗？",
        "给我写一首诗",
        "ありがとうございます。",
        "手伝ってくれますか？",
        "詩を書いてください",
        "감사합니다!",
        "도와주실 수 있나요?",
        "시 하나 써줘",
    ],
)
def test_what_needs_nothing_of_what_was_said_is_known(text: str):
    assert QUESTIONS.read(text, TODAY).is_small_talk


@pytest.mark.parametrize(
    "text",
    [
        "Thanks! And my dog's name?",
        "what did we say yesterday?",
        "東京",
        "4711",
        "What was the poem about?",
        "Which poem did I write?",
        "What is the code?",
        "Write me a poem about Biscuit",
        "Help me with my taxes",
        "Schreib mir ein Gedicht über meinen Hund",
        "Wie heißt meine Schwester?",
        "¿Cómo se llama mi perro?",
        "帮我找一下我的钥匙",
        "私の犬の名前は？",
        "우리 강아지 이름이 뭐야?",
    ],
)
def test_what_asks_for_something_is_no_small_talk(text: str):
    assert not QUESTIONS.read(text, TODAY).is_small_talk


def test_a_kind_is_found_by_what_is_of_it():
    [terms] = QUESTIONS.read("Which pets do I have?", TODAY).kinds.values()
    assert {*ANALYZER.words("dog kitten parrot")} <= terms
    assert not {*ANALYZER.words("pet guitar")} & terms
    assert QUESTIONS.read("Is the dog's hair long?", TODAY).kinds == {"dog": {*ANALYZER.words("puppy pup")}}


def test_a_word_is_asked_for_in_the_forms_no_stemmer_brings_together():
    assert {*ANALYZER.words("write wrote written")} <= QUESTIONS.read("What did I write?", TODAY).own
    assert {*ANALYZER.words("find found")} <= QUESTIONS.read("What did I find?", TODAY).own
    assert "rose" not in QUESTIONS.read("Which flowers did I plant?", TODAY).own


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
def test_a_word_that_is_another_word_too_has_no_other_forms(text: str):
    assert QUESTIONS.read(text, TODAY).forms == {}


@pytest.mark.parametrize("text", ["What about Said?", 'The book by "Sung"?', "Is it far? Yes, Won knows."])
def test_a_name_has_no_other_forms(text: str):
    assert QUESTIONS.read(text.lower(), TODAY).forms.keys() & {*ANALYZER.words("said sung won")}
    assert not QUESTIONS.read(text, TODAY).forms.keys() & {*ANALYZER.words("said sung won")}


def test_a_capital_at_the_beginning_of_a_sentence_makes_no_name():
    assert QUESTIONS.read("Made it. Drove home?", TODAY).forms.keys() == {*ANALYZER.words("made drove")}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("What kind of car would Ann likely drive?", "car ann drive"),
        ("Which type of bread does she bake", "bread bake"),
        ("What does Ann like?", "ann like"),
        ("type checker", "type checker"),
    ],
)
def test_how_a_question_asks_is_not_searched_for(text: str, about: str):
    assert QUESTIONS.read(text, TODAY).words == (*ANALYZER.words(about),)


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
    span = find_dates(question, TODAY)[0]
    assert (span.first, span.last) == (first, last)


@pytest.mark.parametrize(
    "question", ["may I march on?", "February 31, 2023", "9999-12-31 x", "room 2022b", ""]
)
def test_what_is_no_date_or_none_that_exists_does_no_harm(question: str):
    find_dates(question, TODAY)


def test_pieces_are_the_text():
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
