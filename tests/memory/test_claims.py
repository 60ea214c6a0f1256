"""Statements that supersede, end or leave alone an earlier statement, in many languages."""

from __future__ import annotations

import pytest

from memory.language.sentences import Vocabulary
from memory.language.terms import Analyzer
from memory.long_term.claims import Claim, find_claims

VOCABULARY = Vocabulary(Analyzer())


def claim(text: str) -> Claim | None:
    """Return the last claim of a text; None if it has none."""
    return next(reversed(list(find_claims(text, VOCABULARY))), None)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Paris.", "I moved to Lyon."),
        ("I'm living in Paris with my wife.", "We've just moved to Lyon, by the way."),
        ("I work at Initech.", "I now work for Globex."),
        ("I work at Initech.", "I started at Globex."),
        ("I live in Paris.", "I moved to the Netherlands."),
        ("I live in Paris.", 'I read "Dune", and I moved to Oslo.'),
        ("I am 41 years old.", "I'm 42 now."),
        ("I am single.", "I got married last week."),
        ("My favourite colour is green.", "My favourite colour is blue."),
        ("My phone number is 555-0101.", "My phone number has changed to 555-0199."),
        ("My flight is on Tuesday at 10:20.", "My flight was moved to Thursday."),
        ("My flight is on Tuesday at 10:20.", "My flight was delayed until Thursday."),
        ("My flight is on Tuesday at 10:20.", "My flight was actually on Thursday."),
        ("The meeting is on Monday.", "The meeting has been moved to Friday."),
        ("The budget is 4,000 euros.", "The budget is now 5,500 euros."),
        ("Ich wohne in Köln.", "Ich bin letzte Woche nach Hamburg gezogen."),
        ("Ich arbeite bei Siemens.", "Ich arbeite jetzt bei Bosch."),
        ("Mein Lieblingsessen ist Labskaus.", "Mein Lieblingsessen ist jetzt Grünkohl."),
        ("J'habite à Lyon avec ma sœur.", "J'ai déménagé à Nantes."),
        ("Ma couleur préférée est le vert.", "Ma couleur préférée est maintenant le bleu."),
        ("Vivo en Sevilla.", "Me mudé a Granada."),
        ("Tengo 41 años.", "Ya tengo 42 años, por cierto. Tengo 42 años."),
        ("Mi número de teléfono es 555-0101.", "Mi número de teléfono ahora es 555-0199."),
        ("I live in Paris.", "Ich bin nach Berlin gezogen."),
        ("我住在北京。", "我现在住在杭州。"),
        ("我在华为工作。", "我现在在腾讯上班。"),
        ("私は東京に住んでいます。", "私は今大阪に住んでいます。"),
        ("저는 서울에 살아요.", "저는 지금 부산에 살아요."),
        ("Я живу в Москве.", "Я теперь живу в Омске."),
        ("Abito a Pisa.", "Mi sono trasferita a Lucca."),
        ("Moro em Braga.", "Me mudei para Lisboa."),
        ("Ik woon in Gent.", "Ik woon nu in Brugge."),
        ("Ankara'da yaşıyorum.", "Artık İzmir'de yaşıyorum."),
        ("أعيش في القاهرة.", "أعيش الآن في دبي."),
        ("मैं दिल्ली में रहता हूँ।", "मैं अब मुंबई में रहता हूँ।"),
        ("Meine Schwester wohnt in Bramsche.", "Meine Schwester wohnt jetzt in Bersenbrück."),
        ("Trabalho numa padaria.", "Agora trabalho na oficina do Rui."),
        ("My sister lives in Oslo.", "My sister has moved to Bergen."),
        ("Ma sœur habite à Lyon.", "Ma sœur habite maintenant à Nantes."),
        ("我姐姐住在北京。", "我姐姐现在住在杭州。"),
        ("Kız kardeşim Bursa'da oturuyor.", "Kız kardeşim artık Ankara'da oturuyor."),
        ("أختي تسكن في القاهرة.", "أختي تسكن الآن في دبي."),
        ("मेरी बहन दिल्ली में रहती है।", "मेरी बहन अब पुणे में रहती है।"),
        ("妹は東京に住んでいます。", "妹は今大阪に住んでいます。"),
        ("Моя сестра живёт в Москве.", "Моя сестра теперь живёт в Омске."),
        ("My sister lives in Oslo.", "My sister called today. She lives in Bergen now."),
        ("Meine Schwester wohnt in Bramsche.", "Meine Schwester rief an. Sie wohnt jetzt in Bersenbrück."),
        ("My landlord is Mr. Smith.", "My landlord is now Mr. Okonjo."),
        ("Mein Vermieter ist Dr. Weber.", "Mein Vermieter ist jetzt Dr. Müller."),
        ("My daughter studies law.", "My daughter now studies medicine."),
        ("Mi hija estudia derecho.", "Mi hija ahora estudia medicina."),
        ("Mój brat pracuje w Orlenie.", "Mój brat pracuje teraz w Lotosie."),
        ("Мой начальник — Петров.", "Мой начальник теперь Сидоров."),
        ("弟は銀行で働いています。", "弟は今、病院で働いています。"),
        ("동생은 은행에서 일해요.", "동생은 이제 병원에서 일해요."),
        ("Ablam bankada çalışıyor.", "Ablam şimdi hastanede çalışıyor."),
        ("मेरे पिता बैंक में काम करते हैं।", "मेरे पिता अब अस्पताल में काम करते हैं।"),
        ("أختي تعمل في بنك.", "أختي تعمل الآن في مستشفى."),
        ("李强在华为工作。", "李强现在在小米工作。"),
        ("Lavoro alla Barilla.", "Ora lavoro alla Lavazza."),
        ("Dr. Meier praktiziert in Ulm.", "Dr. Meier praktiziert jetzt in Aalen."),
        ("Mein Sohn wohnt in Fulda.", "Mein Sohn ist nach Kassel gezogen."),
        ("이모는 광주에 살아요.", "이모가 전화했어요. 그녀는 지금 목포에 살아요."),
        ("我姑姑住在西安。", "我姑姑打电话来了。她现在住在兰州。"),
        ("I play the cello.", "I now play the viola."),
        ("La doctora Vidal trabaja en Lugo.", "La doctora Vidal ahora trabaja en Vigo."),
        ("Il dott. Riva lavora a Como.", "Il dott. Riva adesso lavora a Lecco."),
        ("Il mio capo è il sig. Conti.", "Il mio capo adesso è il sig. Riva."),
        ("Die Ärztin Vogel arbeitet in Celle.", "Die Ärztin Vogel arbeitet jetzt in Uelzen."),
        ("طبيبي هو الدكتور سالم.", "طبيبي الآن هو الدكتور كريم."),
        ("الدكتورة ليلى تعمل في بيروت.", "الدكتورة ليلى تعمل الآن في صيدا."),
        ("My phone number is 555-0101.", "My new phone number is 555-0199."),
        ("Meine Telefonnummer ist 555-0101.", "Meine neue Telefonnummer ist 555-0199."),
        ("Mi número de teléfono es 555-0101.", "Mi nuevo número de teléfono es 555-0199."),
        ("Mon adresse est le 4 rue Foch.", "Ma nouvelle adresse est le 9 rue Hoche."),
        ("Il mio numero di telefono è 555-0101.", "Il mio nuovo numero di telefono è 555-0199."),
        ("O meu número de telefone é 555-0101.", "O meu novo número de telefone é 555-0199."),
        ("Mijn telefoonnummer is 555-0101.", "Mijn nieuwe telefoonnummer is 555-0199."),
        ("Мой начальник — Петров.", "Мой новый начальник — Сидоров."),
        ("我的老板是王强。", "我的新老板是李明。"),
        ("上司は田中さんです。", "新しい上司は佐藤さんです。"),
        ("Patronum Ankara'da oturuyor.", "Yeni patronum Bursa'da oturuyor."),
        ("طبيبي هو الدكتور سالم.", "طبيبي الجديد هو الدكتور كريم."),
        ("मेरा डॉक्टर राजेश है।", "मेरा नया डॉक्टर सुरेश है।"),
        ("제 전화번호는 010-1234-5678이에요.", "제 전화번호는 이제 010-9999-0000이에요."),
        ("제 번호는 5038입니다.", "제 새 번호는 7777입니다."),
        ("Numaram 5551234.", "Yeni numaram 5559988."),
        ("رقم هاتفي 5551234.", "رقم هاتفي الآن 5559988."),
        ("رقمي ٥٥٥١٢٣٤", "رقمي الجديد ٥٥٥٩٩٨٨"),
        ("मेरा फ़ोन नंबर 98765 है।", "मेरा फ़ोन नंबर अब 91234 है।"),
        ("मेरा नंबर 98765", "मेरा नया नंबर 91234"),
        ("Lucía vive en Zaragoza.", "Lucía se ha mudado, ahora vive en Teruel."),
        ("Ornella abita a Pescara.", "Ornella si è trasferita. Adesso abita a Trieste."),
        ("Varvara wohnt in Ulm.", "Varvara ist umgezogen, sie wohnt jetzt in Celle."),
        ("Dr. Feldman lives in Leeds.", "I saw Dr. Feldman. She now lives in York."),
        ("Mein Onkel wohnt in Hof.", "Jetzt wohnt mein Onkel in Bamberg."),
        ("Mein Onkel trinkt Tee.", "Ich traf meinen Onkel. Jetzt trinkt er Kaffee."),
        ("Mi vecino conduce un Skoda.", "Mi vecino pasó por aquí. Ahora conduce un Fiat."),
        ("Mi abuelo toca la flauta.", "Mi abuelo está bien. Él toca ahora el chelo."),
        ("M. Perrin enseigne les maths.", "M. Perrin enseigne maintenant la physique."),
        ("Mme Colin dirige la boulangerie.", "Mme Colin dirige maintenant la bibliothèque."),
        ("Mio fratello lavora al porto.", "Ho visto mio fratello. Adesso lavora all'aeroporto."),
        ("La sig.ra Conti dirige il forno.", "La sig.ra Conti adesso dirige la biblioteca."),
        ("O Sr. Campos ensina matemática.", "O Sr. Campos agora ensina física."),
        ("Mevr. Jansen geeft wiskunde.", "Mevr. Jansen geeft nu natuurkunde."),
        ("Erkek kardeşim limanda çalışıyor.", "Erkek kardeşim geldi. O artık havaalanında çalışıyor."),
        ("Dr. Ak fırında çalışıyor.", "Dr. Ak artık kütüphanede çalışıyor."),
        ("Мой брат работает в порту.", "Я видел моего брата. Он теперь работает в аэропорту."),
        ("Д-р Носов работает в клинике.", "Д-р Носов теперь работает в школе."),
        ("डॉ. मेहता सूरत में रहते हैं।", "डॉ. मेहता मिले। वे अब वडोदरा में रहते हैं।"),
        ("我哥哥在港口工作。", "我见了我哥哥。他现在在机场工作。"),
        ("王医生住在苏州。", "王医生来了。她现在住在南京。"),
        ("我邻居开大众。", "我邻居来过。他现在开丰田。"),
        ("いとこは神戸に住んでいます。", "いとこが来ました。彼女は今広島に住んでいます。"),
        ("제 형은 항구에서 일해요.", "형을 봤어요. 그는 지금 공항에서 일해요."),
        ("김 선생님은 수학을 가르쳐요.", "김 선생님은 이제 물리를 가르쳐요."),
        ("د. سامي يعمل في المستشفى.", "د. سامي الآن يعمل في الجامعة."),
        ("I live in Paris.", "We've been living in Lyon for a year."),
        ("I work at Initech.", "I have worked for Globex since May."),
    ],
)
def test_a_newer_statement_supersedes_the_older_one(older: str, newer: str):
    before, after = claim(older), claim(newer)
    assert before
    assert after
    assert before.key == after.key
    assert before.value != after.value
    assert after.replaces


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My sister Keziah lives in Leeds.", "Keziah has moved. She lives in Durham now."),
        ("My aunt Rosalind lives in Leeds.", "My aunt Rosalind called. She lives in York now."),
        ("Моя тётя Зинаида живёт в Пскове.", "Моя тётя Зинаида звонила. Она теперь живёт в Твери."),
        ("Minha tia Graça mora em Braga.", "Minha tia Graça ligou. Ela agora mora em Faro."),
        ("Mia zia Ornella abita a Lecco.", "Mia zia Ornella ha chiamato. Adesso abita a Como."),
        ("Mi hermana Lucía vive en Zaragoza.", "Lucía se ha mudado, ahora vive en Teruel."),
        ("Meine Schwester Wiebke wohnt in Kassel.", "Wiebke ist umgezogen, sie wohnt jetzt in Celle."),
        ("Mon frère Gaël habite à Limoges.", "Gaël a déménagé, il habite maintenant à Perpignan."),
        ("Mia sorella Ornella abita a Pescara.", "Ornella adesso abita a Trieste."),
        ("A minha irmã Filipa mora em Évora.", "A Filipa mudou-se, agora mora em Coimbra."),
        ("Mijn broer Joost woont in Arnhem.", "Joost is verhuisd, hij woont nu in Venlo."),
        ("Моя сестра Варвара живёт в Самаре.", "Варвара переехала, теперь она живёт в Твери."),
        ("Kız kardeşim Nalan Bursa'da oturuyor.", "Nalan taşındı, artık Mersin'de oturuyor."),
        ("أختي سعاد تسكن في الرباط.", "انتقلت سعاد، وهي تسكن الآن في طنجة."),
        ("妹の千鶴は名古屋に住んでいます。", "千鶴は引っ越して、今は福岡に住んでいます。"),
        ("제 여동생 은솔이는 대구에 살아요.", "은솔이가 이사해서 지금은 속초에 살아요."),
        ("我妹妹孟溪住在武汉。", "孟溪搬家了，现在住在昆明。"),
    ],
)
def test_an_introduced_person_may_be_called_by_name(older: str, newer: str):
    before, after = list(find_claims(older, VOCABULARY)), list(find_claims(newer, VOCABULARY))
    assert [one for one in before for other in after if one.key == other.key and other.replaces]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My brother Tom lives in Leeds.", "My boss Tom lives in Durham now."),
        ("Dr. Vogel wohnt in Celle.", "Meine Tante Vogel wohnt jetzt in Ulm."),
    ],
)
def test_a_shared_name_alone_supersedes_no_statement_about_somebody_else(older: str, newer: str):
    before, after = list(find_claims(older, VOCABULARY)), list(find_claims(newer, VOCABULARY))
    assert not [one for one in before for other in after if one.key == other.key and other.replaces]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Paris.", "I work in Lyon."),
        ("I live in Paris.", "Do I live in Lyon?"),
        ("I live in Paris.", "My sister now lives in Lyon."),
        ("我住在北京。", "我姐姐现在住在杭州。"),
        ("أعيش في القاهرة.", "أختي انتقلت إلى دبي."),
        ("My brother lives in Oslo.", "My sister now lives in Bergen."),
        ("My sister is a nurse.", "My sister is in Oslo."),
        ("My sister is called Clara.", "My sister is called Anna."),
        ("My dog is brown.", "My cat is black."),
        ("My address is 4 Elm Street.", "My New York address is 9 Fifth Avenue."),
        ("My number is 555-0101.", "My work number is 555-0199."),
        ("My favourite band is Low.", "Another favourite band is Blur."),
        ("The meeting is on Monday.", "The dinner has been moved to Friday."),
        ("The garden is lovely.", "The garden is green."),
        ("Ich wohne in Köln.", "Ich arbeite bei Köln-Messe."),
        ("Mein Hund ist braun.", "Meine Katze ist schwarz."),
        ("Mi color favorito es el verde.", "También mi color favorito es el azul."),
        ("Meine Tochter studiert Jura.", "Meine Tochter wohnt jetzt in Kiel."),
        ("弟は東京で働いています。", "弟は今、千葉に住んでいます。"),
        ("Ablam Konya'da yaşıyor.", "Abim artık Sivas'ta yaşıyor."),
        ("Mein Bruder fährt Skoda.", "Mein Bruder rief an. Jetzt fahre ich Fiat."),
        ("Mi hermano trabaja en el puerto.", "Vi a mi hermana. Ahora trabaja en el aeropuerto."),
        ("Mi hermano trabaja en el puerto.", "Vi a mi hermano. Ahora trabajo en el aeropuerto."),
        ("Mme Colin dirige la boulangerie.", "M. Colin dirige maintenant la bibliothèque."),
        ("Visit my brother tomorrow.", "My brother now visits Oslo."),
        ("我哥哥在港口工作。", "我见了我姐姐。她现在在机场工作。"),
        ("Il mio colore preferito è il blu.", "Il mio colore preferito era il verde."),
        ("Minha irmã é médica.", "Minha irmã era enfermeira."),
        ("Mijn zus is arts.", "Mijn zus was vroeger verpleegster."),
        ("Мой начальник — Петров.", "Мой начальник был Сидоров."),
        ("طبيبي هو سالم.", "طبيبي كان كريم."),
        ("मेरी बहन डॉक्टर है।", "मेरी बहन नर्स थी।"),
        ("妹は医者です。", "妹は看護師でした。"),
        ("제 번호는 5038입니다.", "제 번호는 7777이었습니다."),
        ("Ablam hastanede çalışıyor.", "Ablam bankada çalışıyordu."),
        ("我姐姐是医生。", "我姐姐以前是护士。"),
        # The polite verb ending "います" contains "いま" ("now").
        ("妹は東京に住んでいます。", "妹は大阪に住んでいました。"),
        ("弟は銀行で働いています。", "弟は病院で働いています。"),
    ],
)
def test_statements_that_may_both_be_true_supersede_nothing(older: str, newer: str):
    before, after = claim(older), claim(newer)
    assert not (before and after and before.key == after.key and after.replaces)


@pytest.mark.parametrize(
    ("today", "other"),
    [
        ("I live in Lyon.", "I lived in Paris for two years when I was a student."),
        ("I live in Lyon.", "I was living in Paris."),
        ("I live in Lyon.", "I have lived in Paris."),
        ("I live in Lyon.", "I am not living in Paris."),
        ("I am married.", "I was single when we met."),
        ("I am married.", "I'm not single."),
        ("I work at Globex.", "I was working for Google in 2010."),
        ("I work at Globex.", "We worked at Google."),
        ("I am 42 years old.", "I have 3, and they are lovely."),
        ("My favourite colour is blue.", "My favourite colour was green (when I was a child)."),
        ("My favourite colour is blue.", "My favourite colour was green, but now it is blue."),
        ("My favourite colour is blue.", "My favourite colour is not green."),
        ("My sister is a doctor.", "My sister was a nurse."),
        ("My boss is Tom.", "My new boss was Ann."),
        ("My flight is on Tuesday.", "My flight was on Friday."),
        ("Mein Bruder ist Lehrer.", "Mein Bruder war Arzt."),
        ("Mein Bruder ist Lehrer.", "Mein Bruder ist kein Arzt."),
        ("Meine Lieblingsfarbe ist Blau.", "Meine Lieblingsfarbe ist nicht Grün."),
        ("Ma couleur préférée est le bleu.", "Ma couleur préférée était le vert."),
        ("Mi color favorito es el azul.", "Mi color favorito era el verde."),
        ("我住在杭州。", "以前我住在北京。"),
        ("我住在杭州。", "小时候，我住在北京。"),
        ("我在腾讯工作。", "当时我在华为工作。"),
        ("Ich wohne in Köln.", "Ich habe in Berlin gewohnt."),
        ("Ich wohne in Köln.", "Ich wohnte in Berlin."),
        ("Ich wohne in Köln.", "Ich lebte in Berlin."),
        ("Ich wohne in Köln.", "Ich bin nicht nach Berlin gezogen."),
        ("Ich wohne in Köln.", "Ich ziehe nicht nach Berlin."),
        ("Ich arbeite bei Siemens.", "Ich arbeitete bei Bosch."),
        ("J'ai 52 ans.", "J'ai 30 ans d'expérience."),
        ("J'ai 52 ans.", "J'ai 30 ans de métier."),
        ("J'habite à Nantes.", "J'habitais à Lyon."),
        ("J'habite à Nantes.", "Je n'habite pas à Lyon."),
        ("Tengo 42 años.", "Tengo 20 años de experiencia."),
        ("Tengo 42 años.", "No tengo 41 años."),
        ("Vivo en Sevilla.", "No vivo en Madrid."),
        ("Vivo en Sevilla.", "Vivía en Madrid."),
        ("Vivo en Sevilla.", "No me mudé a Madrid."),
        ("Trabajo en Inditex.", "No trabajo en Google."),
        ("Estoy casado.", "No estoy divorciado."),
        ("Abito a Pisa.", "Non abito a Roma."),
        ("Abito a Pisa.", "Abitavo a Roma."),
        ("Moro em Braga.", "Não moro em Lisboa."),
        ("Moro em Braga.", "Morava em Lisboa."),
        ("Ik woon in Gent.", "Ik woon niet in Brugge."),
        ("Я живу в Москве.", "Я не живу в Омске."),
        ("Я живу в Москве.", "Я жила в Омске."),
        ("أعيش في القاهرة.", "لا أعيش في دبي."),
        ("أعيش في القاهرة.", "كنت أعيش في دبي."),
        ("मैं दिल्ली में रहता हूँ।", "मैं मुंबई में रहता था।"),
        ("मैं दिल्ली में रहता हूँ।", "मैं मुंबई में नहीं रहता हूँ।"),
        ("Ankara'da yaşıyorum.", "İzmir'de yaşıyordum."),
        ("我住在杭州。", "我以前住在北京。"),
        ("我住在杭州。", "我不住在北京。"),
        ("我住在杭州。", "我住在北京的时候认识她。"),
        ("我在腾讯工作。", "我在华为工作过。"),
        ("私は大阪に住んでいます。", "私は東京に住んでいません。"),
        ("私は大阪に住んでいます。", "私は東京に住んでいました。"),
        ("私は大阪に住んでいます。", "私は東京に住んでいた。"),
        ("私は大阪に住んでいます。", "私は東京に引っ越していません。"),
        ("저는 부산에 살아요.", "저는 서울에 살았어요."),
        ("저는 부산에 살아요.", "저는 서울에 살고 있었어요."),
        ("저는 부산에 살아요.", "저는 서울에 살지 않아요."),
        ("저는 부산에 살아요.", "저는 서울로 이사하지 않았어요."),
        ("I work at Siemens as an engineer.", "I started to feel sick after lunch."),
        ("I work at Siemens as an engineer.", "I started at 9 today."),
        ("I work at Siemens as an engineer.", "I work at night."),
        ("I live in Oslo.", "I moved to the next exercise."),
        ("I live in Paris.", "My sister wrote: I moved to Oslo."),
        ("I live in Paris.", 'My sister said "I moved to Oslo".'),
        ("Ich wohne in Köln.", "Meine Schwester schrieb: Ich wohne jetzt in Hamburg."),
        ("J'habite à Lyon.", "Ma sœur a écrit : j'habite à Nantes."),
        ("我住在北京。", "我姐姐写道：我现在住在杭州。"),
        ("私は大阪に住んでいます。", "姉は「私は東京に住んでいます」と言った。"),
    ],
)
def test_past_negated_or_quoted_statements_supersede_nothing(today: str, other: str):
    [said] = find_claims(today, VOCABULARY)
    assert said.replaces
    assert said.key not in {one.key for one in find_claims(other, VOCABULARY) if one.replaces}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Berlin.", "I don't live in Berlin anymore."),
        ("I live in Berlin.", "I'm not living in Berlin any longer."),
        ("I live in Berlin.", "I dont live in Berlin anymore"),
        ("I work at Siemens.", "I don't work at Siemens anymore."),
        ("I work at Siemens.", "I no longer work at Siemens."),
        ("I work at Siemens.", "I stopped working at Siemens."),
        ("I work at Siemens.", "I've just quit working at Siemens."),
        ("I am married.", "I'm not married anymore."),
        ("I drink coffee.", "I stopped drinking coffee."),
        ("I drink coffee.", "I've stopped drinking coffee."),
        ("I drink coffee.", "I don't drink coffee anymore."),
        ("I drink coffee.", "I no longer drink coffee."),
        ("I use Linux.", "I stopped using Linux."),
        ("My sister lives in Oslo.", "My sister doesn't live in Oslo anymore."),
        ("My sister is a nurse.", "My sister isn't a nurse anymore."),
        ("My sister is a nurse.", "My sister is not a nurse any longer."),
        ("My sister is a nurse.", "My sister is no longer a nurse."),
        ("My brother plays chess.", "My brother doesn't play chess anymore."),
        ("My brother plays chess.", "My brother stopped playing chess."),
        ("My brother uses Linux.", "My brother doesn't use Linux anymore."),
        ("My landlord is Mr. Smith.", "My landlord isn't Mr. Smith anymore."),
        ("Ich wohne in Berlin.", "Ich wohne nicht mehr in Berlin."),
        ("Ich lebe in Berlin.", "Ich lebe nicht länger in Berlin."),
        ("Ich arbeite bei Siemens.", "Ich arbeite nicht mehr bei Siemens."),
        ("Ich bin verheiratet.", "Ich bin nicht mehr verheiratet."),
        ("Ich trinke Kaffee.", "Ich trinke keinen Kaffee mehr."),
        ("Meine Schwester ist Ärztin.", "Meine Schwester ist nicht mehr Ärztin."),
        ("Meine Schwester ist Ärztin.", "Meine Schwester ist keine Ärztin mehr."),
        ("J'habite à Paris.", "Je n'habite plus à Paris."),
        ("Je vis à Paris.", "Je ne vis plus à Paris."),
        ("Je travaille chez Renault.", "Je ne travaille plus chez Renault."),
        ("Je suis marié.", "Je ne suis plus marié."),
        ("Ma sœur habite à Lyon.", "Ma sœur n'habite plus à Lyon."),
        ("Ma sœur est infirmière.", "Ma sœur n'est plus infirmière."),
        ("Vivo en Madrid.", "Ya no vivo en Madrid."),
        ("Vivo en Madrid.", "No vivo más en Madrid."),
        ("Trabajo en Google.", "Ya no trabajo en Google."),
        ("Estoy casado.", "Ya no estoy casado."),
        ("Mi hermana vive en Lugo.", "Mi hermana ya no vive en Lugo."),
        ("Mi hermana es enfermera.", "Mi hermana ya no es enfermera."),
        ("Abito a Roma.", "Non abito più a Roma."),
        ("Lavoro alla Fiat.", "Non lavoro più alla Fiat."),
        ("Mia sorella abita a Lecco.", "Mia sorella non abita più a Lecco."),
        ("Mia sorella è infermiera.", "Mia sorella non è più infermiera."),
        ("Moro em Lisboa.", "Já não moro em Lisboa."),
        ("Moro em Lisboa.", "Não moro mais em Lisboa."),
        ("Trabalho na Sonae.", "Já não trabalho na Sonae."),
        ("Trabalho na Sonae.", "Não trabalho mais na Sonae."),
        ("Minha irmã mora em Braga.", "Minha irmã não mora mais em Braga."),
        ("Ik woon in Gent.", "Ik woon niet meer in Gent."),
        ("Ik werk bij Philips.", "Ik werk niet meer bij Philips."),
        ("Ik drink koffie.", "Ik drink geen koffie meer."),
        ("Mijn zus woont in Gent.", "Mijn zus woont niet meer in Gent."),
        ("Я живу в Москве.", "Я больше не живу в Москве."),
        ("Я живу в Москве.", "Я не живу больше в Москве."),
        ("Я живу в Москве.", "Я уже не живу в Москве."),
        ("Я работаю в Газпроме.", "Я больше не работаю в Газпроме."),
        ("Я пью кофе.", "Я больше не пью кофе."),
        ("Моя сестра живёт в Твери.", "Моя сестра больше не живёт в Твери."),
        ("Ankara'da yaşıyorum.", "Artık Ankara'da yaşamıyorum."),
        ("Ankara'da oturuyorum.", "Artık Ankara'da oturmuyorum."),
        ("Ablam bankada çalışıyor.", "Ablam artık bankada çalışmıyor."),
        ("Ablam Bursa'da oturuyor.", "Ablam artık Bursa'da oturmuyor."),
        ("Kahve içiyorum.", "Artık kahve içmiyorum."),
        ("أعيش في القاهرة.", "لم أعد أعيش في القاهرة."),
        ("أعيش في القاهرة.", "لا أعيش في القاهرة بعد الآن."),
        ("أعيش في القاهرة.", "ما عدت أعيش في القاهرة."),
        ("أختي تعمل في بنك.", "أختي لم تعد تعمل في بنك."),
        ("मैं दिल्ली में रहता हूँ।", "मैं अब दिल्ली में नहीं रहता।"),
        ("मैं दिल्ली में रहता हूँ।", "मैं अब दिल्ली में नहीं रहता हूँ।"),
        ("मेरी बहन दिल्ली में रहती है।", "मेरी बहन अब दिल्ली में नहीं रहती है।"),
        ("मेरी बहन नर्स है।", "मेरी बहन अब नर्स नहीं है।"),
        ("我住在北京。", "我不再住在北京。"),
        ("我住在北京。", "我已经不住在北京了。"),
        ("我住在北京。", "我不住在北京了。"),
        ("我在华为工作。", "我不再在华为工作。"),
        ("我在华为工作。", "我已经不在华为工作了。"),
        ("我在华为工作。", "我不在华为工作了。"),
        ("我在华为上班。", "我不在华为上班了。"),
        ("我姐姐住在北京。", "我姐姐已经不住在北京了。"),
        ("我姐姐住在北京。", "我姐姐不再住在北京。"),
        ("我姐姐是护士。", "我姐姐不再是护士了。"),
        ("我姐姐是护士。", "我姐姐已经不是护士了。"),
        ("私は東京に住んでいます。", "私はもう東京に住んでいません。"),
        ("私は東京に住んでいます。", "私はもう東京には住んでいません。"),
        ("私は東京に住んでいます。", "私はもう東京に住んでいない。"),
        ("妹は東京に住んでいます。", "妹はもう東京に住んでいません。"),
        ("弟は銀行で働いています。", "弟はもう銀行で働いていません。"),
        ("妹は看護師です。", "妹はもう看護師ではありません。"),
        ("妹は看護師です。", "妹はもう看護師じゃない。"),
        ("저는 서울에 살아요.", "저는 더 이상 서울에 살지 않아요."),
        ("저는 서울에 살아요.", "저는 이제 서울에 안 살아요."),
        ("저는 서울에 살아요.", "저는 이제 서울에 살지 않아요."),
        ("동생은 은행에서 일해요.", "동생은 더 이상 은행에서 일하지 않아요."),
        ("Mój brat mieszka w Gdyni.", "Mój brat już nie mieszka w Gdyni."),
        ("Mój brat pracuje w Orlenie.", "Mój brat już nie pracuje w Orlenie."),
    ],
)
def test_a_no_longer_statement_denies_only_the_same_value(older: str, newer: str):
    before, after = claim(older), claim(newer)
    assert before
    assert after
    assert (before.key, before.value) == (after.key, after.value)
    assert after.is_denied
    assert not after.replaces


@pytest.mark.parametrize(
    ("today", "other"),
    [
        ("I live in Lyon.", "I live in Lyon and no longer in Paris."),
        ("I live in Lyon.", "My landlord no longer answers, I live in Lyon."),
        ("My landlord is Mr. Smith.", "My landlord is Mr. Smith but he no longer answers."),
        ("I live in Berlin.", "I don't live in Berlin."),
        ("I drink coffee.", "I don't drink coffee."),
        ("Ich trinke Kaffee.", "Ich trinke keinen Kaffee."),
        ("Ankara'da yaşıyorum.", "Ankara'da yaşamıyorum."),
        ("我住在北京。", "不过我住在北京了。"),
        ("我住在北京。", "我差不多住在北京了。"),
        ("Moro em Braga.", "Não moro em Braga."),
        ("Я живу в Москве.", "Я не живу в Москве."),
    ],
)
def test_statements_without_an_end_deny_nothing(today: str, other: str):
    [said] = find_claims(today, VOCABULARY)
    others = find_claims(other, VOCABULARY)
    assert not [
        one
        for one in others
        if one.key == said.key and (one.is_denied or (one.replaces and one.value != said.value))
    ]


def test_a_repeated_statement_has_the_same_value():
    before, after = claim("I live in Paris."), claim("By the way, I still live in Paris with my wife.")
    assert before
    assert after
    assert (before.key, before.value) == (after.key, after.value)


def test_a_claim_has_its_position_in_the_text():
    text = "Hello there! I live in Paris. And you?"
    found = claim(text)
    assert found
    assert text[found.start : found.end] == "I live in Paris."


def test_a_long_table_without_a_full_stop_has_no_claims():
    assert claim("I live in Paris") is not None
    assert claim("I live in Paris" + " 17 red" * 300) is None


@pytest.mark.parametrize(
    "text",
    [
        "Good to see you!",
        "That's really sweet.",
        "Taking time for yourself is key.",
        "Trabalho em equipa é bom.",
    ],
)
def test_a_remark_has_no_claims(text: str):
    assert claim(text) is None
