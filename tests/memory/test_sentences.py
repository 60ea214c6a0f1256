"""Ends of sentences in many languages, and cuts that never go through a word, number or identifier."""

from __future__ import annotations

import re

import pytest

from memory.language.sentences import split_sentences
from memory.summaries.extractive import extract_missing, extract_summary
from memory.summaries.summary import bounded_summary
from memory.tokens import estimate_text, text_message
from memory.truncate import cut_end, cut_middle, split_whole

WHOLE = [
    "My landlord is now Mr. Okonjo.",
    "She lives at St. James Street no. 5 with Dr. Ito.",
    "Am 3. Mai kommt Dr. Müller.",
    "Born on 5. März 1990 in Bonn.",
    "Die Wohnung ist Nr. 5 bei Fr. Weiß.",
    "Vom 12. Oktober bis zum 3. November bin ich z. B. in Bonn.",
    "El Sr. García y la Dra. Ruiz viven en la Av. Central.",
    "M. Dupont et Mme. Leroy habitent au no. 7.",
    "Il sig. Rossi vive qui e il dott. Bianchi è di Pisa.",
    "O Sr. Silva e a Dra. Ana não moram aqui.",
    "Mevr. de Vries en Dhr. Jansen wonen hier.",
    "Dr. Yılmaz Ankara'da.",
    "Г. Иванов живет на ул. Ленина.",
    "我现在住在杭州。",
    "私の先生は田中さんです。",
    "저는 서울에 삽니다.",
    "मैं दिल्ली में रहता हूँ।",
    "أعيش في القاهرة.",
    "Das Treffen ist am 3. 5. in Raum Nr. 12.",
    "Le Pr. Lemaire et Mlle. Roux arrivent.",
    "डॉ. शर्मा आज आए।",
    "قال د. منصور وأ.د. سامي إنه مريض.",
    "The bill was approx. 20 EUR.",
    "See vol. 2, p. 41, and Fig. 3.",
    "Er wohnt in der Goethestr. 12 im 3. Stock.",
    "Mein Vermieter ist jetzt Hr. Dr. Kolbe in der Gartenstr. Nr. 7.",
    "Der 2. Weltkrieg steht in Kap. 2, Abs. 3.",
    "oğlum 5. sınıfta okuyor.",
    "Av. Demir ile Doç. Dr. Ak, Atatürk Cad. No. 8'de.",
    "L'avv. Brambilla scrive all'ing. Conti.",
    "A Dra. Moura mora na Av. Paulista.",
    "EE. UU. queda lejos, véase la pág. 9.",
    "Il habite bd. Voltaire et c'est l'art. 5.",
    "Zie blz. 4, o.a. tabel 2.",
    "Дом на пл. Ленина, т. е. рано, рис. 2.",
    "我认识Mr. Smith和Dr. Wu。",
    "彼はMr. Brownです。",
    "약속은 2026. 7. 9. 오후 3시예요.",
    "1999. 12. 31.에 태어났어요.",
    "The pond is ready on 3. Mai.",
    "L'on. Greco ha parlato con l'on. Rossi.",
    "O advogado disse a V. Exa. que o prazo terminou.",
    "A Exma. Sra. Lopes e a Profa. Lima telefonaram.",
    "Институт им. Пушкина стоит на пл. им. Ленина.",
    "Им. Ленина назвали завод.",
    "Yrd. Doç. Dr. Ak bugün geldi, Sok. Gül yanında.",
    "Trabajo en la Cía. Naviera.",
    "Mw. Jansen belde.",
    "Uzm. Dr. Kaya ile Öğr. Gör. Aksoy, Gül Mah. Lale Sok. No. 5'te.",
    "A Des. Costa mora na R. Augusta.",
    "Живу на ул. Мира, корп. 2.",
]


@pytest.mark.mechanism("memory.sentences")
@pytest.mark.parametrize("sentence", WHOLE)
def test_abbreviations_and_ordinals_end_no_sentence_in_any_language(sentence: str) -> None:
    assert split_sentences(sentence) == [sentence]
    joint = "" if sentence.endswith("。") else " "
    text = f"{sentence}{joint}{sentence}"
    assert [one.strip() for one in split_sentences(text)] == [sentence, sentence]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("My PIN is 4711. I like tea.", 2),
        ("I have 3. They are red.", 2),
        ("She said hmm. Then she left.", 2),
        ("Es sind 3. 5 davon sind rot.", 2),
        ("यह अच्छा है. वह गया।", 2),
        ("She said no. Then she left.", 2),
        ("Я сказал им. Потом ушёл.", 2),
        ("Due anni fa. Poi sono partito.", 2),
        ("Şu filmi gör. Sonra konuşuruz.", 2),
        ("i live in paris. my dog is rex.", 2),
        ("「はい。」と言った。次。", 3),
        ("One!\nTwo\n\nThree? Four", 4),
        ("هل تعرف؟ نعم.", 2),
        ("We met at St. Mary's. Bring papers.", 2),
        ("Je n'en veux pas. Merci.", 2),
        ("The dog isn't. They'll've.", 2),
        ("Он родился в 1990 г. Живёт в Твери.", 2),
        ("I ran 5 km. It was hot.", 2),
        ("Please call me. Then we go.", 2),
        ("Todo va bien. Mañana salgo.", 2),
        ("Ja, dat kan. Dan gaan we.", 2),
    ],
)
def test_sentences_end_at_final_punctuation_and_line_breaks(text: str, count: int) -> None:
    sentences = split_sentences(text)
    assert len(sentences) == count
    assert "".join(sentences) == text


@pytest.mark.parametrize(
    "text", ["Mr. " * 20_000, "a. " * 20_000, "(“" * 30_000, "." * 60_000, " \n" * 9_000]
)
def test_joining_the_sentences_of_degenerate_texts_gives_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text


ORDERS = [f"ORD-{65_000 + number}/SN{234_000 + number}" for number in range(120)]
LIST = f"The orders are {', '.join(ORDERS)}."
_NUMBER = re.compile(r"ORD[-\w/]*|\bSN\w*")


@pytest.mark.parametrize("word", ["bzw", "evtl", "usw", "vgl"])
def test_ties_between_languages_do_not_depend_on_the_order_of_words(word: str) -> None:
    """The detected words are a set, whose order differs between processes."""
    assert len(split_sentences(f"Ende vous. Max {word}. Anna")) == 2
    assert len(split_sentences(f"Vous ende. Max {word}. Anna")) == 2


@pytest.mark.mechanism("memory.whole-facts")
def test_a_long_list_is_shortened_to_whole_numbers() -> None:
    said = [text_message("user", LIST)]
    kept = extract_summary(said, 900)
    added = extract_missing(said, "", "Nothing of it.", 900)
    for text in (kept, added):
        assert len(set(_NUMBER.findall(text))) > 30
        assert set(_NUMBER.findall(text)) <= set(ORDERS)
    assert set(_NUMBER.findall("\n".join(split_whole(LIST, 320)))) == set(ORDERS)


@pytest.mark.mechanism("memory.whole-facts")
@pytest.mark.parametrize("limit", range(80, 1_400, 53))
def test_no_cut_goes_through_a_number(limit: int) -> None:
    for cut in (cut_middle(LIST, limit), cut_end(LIST, limit), bounded_summary(LIST, limit)):
        assert set(_NUMBER.findall(cut)) <= set(ORDERS)
    assert estimate_text(bounded_summary(LIST, limit)) <= limit


def test_an_overlong_word_is_left_out_instead_of_cut() -> None:
    assert list(split_whole("a" * 1_000 + " b", 320)) == ["b"]
    assert "".join(split_whole("中" * 1_000, 320)) == "中" * 1_000
