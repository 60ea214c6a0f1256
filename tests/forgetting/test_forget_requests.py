"""A request to forget proposes the texts that match it and is carried out once confirmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting import proposing
from chatapp.forgetting import tasks as forgetting_tasks
from chatapp.forgetting.actions import forget as forget_actions
from chatapp.forgetting.actions.collecting import Chosen
from chatapp.forgetting.actions.forget import MESSAGES
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt, Tombstone
from chatapp.forgetting.proposing import is_about, propose_forgetting
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.analysis import vocabulary
from chatapp.recall.user_search import search_memory
from memory.long_term.memory_requests import is_for_good, read_forget_request, read_remember_requests
from tests.forgetting.everywhere import tables_with
from tests.forgetting.lives import KEPT, SAID, SECRET, live
from tests.memory_store.rows import NOW, new_conversation, say

Clients = Callable[..., Client]
FORGET = "/api/v1/memory/forget"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("forget that my dog is called Rex", "my dog is called Rex"),
        ("Please forget that I live in Paris.", "I live in Paris"),
        ("Can you forget about the plum tree?", "the plum tree"),
        ("Forget what I told you about Rex", "Rex"),
        ("forget my phone number", "my phone number"),
        ("/forget heliotrope", "heliotrope"),
        ("Vergiss bitte, dass ich in Paris wohne!", "ich in Paris wohne"),
        ("oublie que j'habite à Paris", "j'habite à Paris"),
        ("Vergiss Rex!", "Rex"),
        ("vergiss die Adresse in Bonn", "die Adresse in Bonn"),
        ("Oublie que je vis à Lyon.", "je vis à Lyon"),
        ("Olvida que vivo en París, por favor", "vivo en París, por favor"),
        ("Dimentica che abito a Pisa.", "abito a Pisa"),
        ("Por favor, esqueça que moro em Braga.", "moro em Braga"),
        ("Vergeet dat ik in Gent woon.", "ik in Gent woon"),
        ("Пожалуйста, забудь, что я живу в Омске.", "я живу в Омске"),
        ("Забудь про Барсика", "Барсика"),
        ("انس أن اسم كلبي ريكس", "اسم كلبي ريكس"),
        ("请忘记我的地址。", "我的地址"),
        ("请忘记我住在杭州的事。", "我住在杭州"),
        ("把我的电话号码忘掉吧。", "我的电话号码"),
        ("私の住所を忘れてください。", "私の住所"),
        ("内 주소를 잊어 주세요.", "内 주소"),
        ("मेरा पता भूल जाओ।", "मेरा पता"),
        ("Adresimi unut.", "Adresimi"),
        ("never remember that I live in Paris", "I live in Paris"),
        ("vergiss nicht, dass ich in Bonn wohne", None),
        ("vergiss es", None),
        ("别忘了我住在杭州。", None),
        ("不要忘记我住在杭州。", None),
        ("忘れないで、パリに住んでいる。", None),
        ("Не забудь, что я живу в Омске.", None),
        ("Bunu unutma.", None),
        ("Forget that I live in Paris for good!", "I live in Paris"),
        ("I never remember that name", None),
        ("don't forget that I live in Paris", None),
        ("I never forget that day", None),
        ("forget it", None),
        ("Forget about it.", None),
        ("forget the cake, let us talk about bread", None),
        ("forget that " + "word " * 400, None),
        ("Kannst du bitte meine alte Adresse vergessen?", "meine alte Adresse"),
        ("¿Puedes olvidar mi dirección?", "mi dirección"),
        ("Olvidé las llaves en casa.", None),
        ("Peux-tu oublier mon numéro de téléphone ?", "mon numéro de téléphone"),
        ("Забудь всё, что я рассказывала про Игоря.", "Игоря"),
        ("أريدك أن تنسى اسم كلبي", "اسم كلبي"),
        ("Zapomnij, że pracuję w Orlenie.", "pracuję w Orlenie"),
        ("Zapomniałem parasola.", None),
        ("傘を忘れました。", None),
        ("我忘了带伞。", None),
        ("우산을 잊어버렸어요.", None),
        ("मैं अपना छाता भूल गया।", None),
        ("Şemsiyemi unuttum.", None),
        ("Lösche meinen Geburtstag aus deinem Gedächtnis.", "meinen Geburtstag"),
        ("妹の名前を記憶から消してください", "妹の名前"),
        ("You forget things too quickly.", None),
        ("Don't remember that I live in Paris.", "I live in Paris"),
        ("Забудь, пожалуйста, мой день рождения", "мой день рождения"),
        ("Можешь забыть, где я работаю?", "где я работаю"),
        ("هل يمكنك أن تنسى رقم هاتفي؟", "رقم هاتفي"),
        ("Elle oublie toujours son sac.", None),
        ("Hij vergeet zijn sleutels.", None),
        ("Wipe my shoe size from your memory", "my shoe size"),
        ("Ich möchte, dass du meine Schuhgröße vergisst.", "meine Schuhgröße"),
        ("Vergiss meinen Geburtstag nicht!", None),
        ("Merk dir meinen alten Arbeitgeber nicht mehr.", "meinen alten Arbeitgeber"),
        ("Vergiss alles, was ich über Rex erzählt habe.", "Rex"),
        ("Warum vergisst du alles?", None),
        ("Me gustaría que olvidaras mi dirección.", "mi dirección"),
        ("S'il te plaît, oublie que j'avais un kayak.", "j'avais un kayak"),
        ("J'aimerais que tu oublies ma pointure.", "ma pointure"),
        ("Comment oublier quelqu'un ?", None),
        ("Scordati del mio numero", "mio numero"),
        ("Gostaria que esquecesses a minha morada", "a minha morada"),
        ("Ik wil dat je mijn schoenmaat vergeet.", "mijn schoenmaat"),
        ("Vergeet wat ik over Rex heb verteld", "Rex"),
        ("Ayakkabı numaramı unutmanı istiyorum.", "Ayakkabı numaramı"),
        ("Я хочу, чтобы ты забыл мой размер обуви.", "мой размер обуви"),
        ("Забыла ключи дома.", None),
        ("Как забыть бывшую?", None),
        ("मेरा पता अपनी स्मृति से मिटा दीजिए", "मेरा पता"),
        ("我希望你忘记我的鞋码", "我的鞋码"),
        ("別記住我的鞋碼", "我的鞋碼"),
        ("我要忘记他", None),
        ("住所を忘れてもらいたいです", "住所"),
        ("靴のサイズは覚えないでください", "靴のサイズ"),
        ("옛 주소를 잊어주셨으면 해요", "옛 주소"),
        ("옛 주소는 기억하지 마세요", "옛 주소"),
        ("Forget I never liked Paris.", "I never liked Paris"),
        ("Vergiss Rex nie!", None),
        ("Onthoud nooit dat ik in Gent woon.", "ik in Gent woon"),
        ("Merk dir nicht, dass ich in Bonn wohne.", "ich in Bonn wohne"),
        ("No recuerdes nunca que vivo en París.", "vivo en París"),
        ("Ne retiens pas que j'habite à Lyon.", "j'habite à Lyon"),
        ("パリに住んでいることは覚えないで", "パリに住んでいる"),
    ],
)
def test_forget_requests_are_distinguished_from_other_messages(text: str, what: str | None):
    assert read_forget_request(text) == what


@pytest.mark.parametrize(
    ("text", "wished"),
    [
        ("Remember that I live in Paris.", ["I live in Paris."]),
        ("Hello! Please remember: my dog is Rex. It rains.", ["my dog is Rex."]),
        ("Don't forget that I live in Paris.", ["I live in Paris."]),
        ("Merk dir bitte, dass ich in Paris wohne.", ["ich in Paris wohne."]),
        ("Souviens-toi que j'habite à Paris.", ["j'habite à Paris."]),
        ("Recuerda que vivo en París.", ["vivo en París."]),
        ("Ten presente que vivo en París.", ["vivo en París."]),
        ("Guarda que o meu código é 61B8.", ["o meu código é 61B8."]),
        ("请记住：我住在巴黎。", ["我住在巴黎。"]),
        ("别忘了我住在杭州。", ["我住在杭州。"]),
        ("تذكر أنني أسكن في دبي", ["أسكن في دبي"]),
        ("私は京都に住んでいると覚えておいて", ["私は京都に住んでいる"]),
        ("저는 부산에 산다는 것을 기억해 줘", ["저는 부산에 산다"]),
        ("Ricordati che abito a Pisa.", ["abito a Pisa."]),
        ("Lembre-se de que moro em Braga.", ["moro em Braga."]),
        ("Onthoud dat ik in Gent woon.", ["ik in Gent woon."]),
        ("Запомни, что я живу в Омске.", ["я живу в Омске."]),
        ("تذكر أن اسم كلبي ريكس.", ["اسم كلبي ريكس."]),
        ("パリに住んでいることを覚えておいてください。", ["パリに住んでいる"]),
        ("내 개 이름은 렉스라는 것을 기억해 줘.", ["내 개 이름은 렉스"]),
        ("याद रखो कि मैं दिल्ली में रहता हूँ।", ["मैं दिल्ली में रहता हूँ।"]),
        ("Unutma, Ankara'da yaşıyorum.", ["Ankara'da yaşıyorum."]),
        ("I live in Paris.", []),
        ("请忘记我的地址。", []),
        ("Do you remember that I live in Paris?", []),
        ("I remember that I lived in Paris.", []),
        ("Never remember that I live in Paris.", []),
        ("Forget that I live in Paris.", []),
        ("Zapamiętaj, że mam alergię na kiwi.", ["mam alergię na kiwi."]),
        ("Kannst du dir merken, dass mein Zug um 7 fährt?", ["mein Zug um 7 fährt?"]),
        ("Имей в виду, что я работаю ночью.", ["я работаю ночью."]),
        ("제가 밤에 일한다는 거 잊지 마세요.", ["제가 밤에 일한"]),
        ("मत भूलना कि मेरे बेटे का नाम थियो है।", ["मेरे बेटे का नाम थियो है।"]),
        ("血液型はB型です。覚えておいて。", ["血液型はB型です。"]),
        ("옛날을 기억해요.", []),
        ("Te souviens-tu de mon nom ?", []),
        ("Não se esqueça que a minha filha faz anos em maio.", ["a minha filha faz anos em maio."]),
        ("Non ti dimenticare che parto lunedì.", ["parto lunedì."]),
        ("Şunu unutma: cumaları çalışmıyorum.", ["cumaları çalışmıyorum."]),
        ("Vergiss meinen Geburtstag nicht.", ["meinen Geburtstag"]),
        ("Merk dir: Ich esse Fisch nicht.", ["Ich esse Fisch nicht."]),
        ("Ich möchte, dass du dir merkst, dass ich Fisch hasse.", ["ich Fisch hasse."]),
        ("Merkst du, dass ich traurig bin?", []),
        ("Je veux que tu te souviennes que je pars lundi.", ["je pars lundi."]),
        ("Garde en tête que je pars lundi", ["je pars lundi"]),
        ("Non scordare che parto lunedì", ["parto lunedì"]),
        ("Anote que sou canhoto", ["sou canhoto"]),
        ("Aklında tut: cumaları çalışmıyorum", ["cumaları çalışmıyorum"]),
        ("Я хочу, чтобы ты запомнила, что я левша.", ["я левша."]),
        ("我希望你记住我是左撇子", ["我是左撇子"]),
        ("你能记住我是左撇子吗？", ["我是左撇子"]),
        ("你记得我的鞋码吗？", []),
        ("左利きだと記憶しておいて", ["左利きだ"]),
        ("제가 왼손잡이라는 것을 기억해주셨으면 합니다.", ["제가 왼손잡이"]),
        ("أرجو أن تتذكر أنني أعسر", ["أعسر"]),
        ("Remember I never eat pork.", ["I never eat pork."]),
        ("Remember: never call me Bob.", ["never call me Bob."]),
        ("Remember never to call me Bob.", ["never to call me Bob."]),
        ("Remember no pork for me.", ["no pork for me."]),
        ("No, remember that I live in Paris.", ["I live in Paris."]),
        ("Recuerda que nunca como carne.", ["nunca como carne."]),
        ("Recuerda: no como carne.", ["no como carne."]),
        ("Ricorda che mai mangio carne.", ["mai mangio carne."]),
        ("Lembra que nunca como carne.", ["nunca como carne."]),
        ("Запомни, я никогда не ем мясо.", ["я никогда не ем мясо."]),
        ("Onthoud: nooit vlees.", ["nooit vlees."]),
        ("Merk dir: meine Frau verträgt Nüsse nicht.", ["meine Frau verträgt Nüsse nicht."]),
        ("Souviens-toi : jamais de porc.", ["jamais de porc."]),
        ("Zapamiętaj nie jem mięsa.", ["nie jem mięsa."]),
        ("تذكر: لا آكل اللحم", ["لا آكل اللحم"]),
        ("Ну что ж, запомни, что я живу в Омске", ["я живу в Омске"]),
        ("Так что запомни: я не ем мясо.", ["я не ем мясо."]),
        ("记住我从不吃猪肉。", ["我从不吃猪肉。"]),
    ],
)
def test_remember_requests_are_parsed(text: str, wished: list[str]):
    assert list(read_remember_requests(text)) == wished


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please never remember that I live in Paris.", True),
        ("Forget my phone number, for good.", True),
        ("vergiss meine Adresse für immer", True),
        ("Forget that I never liked Paris.", False),
        ("forget that I live in Paris", False),
    ],
)
def test_a_forget_request_may_be_for_good(text: str, expected: bool):
    assert is_for_good(text) == expected
    assert read_forget_request(text)


def post(client: Client, path: str, status: int = 200, **body: object) -> dict:
    answer = client.post(path, json.dumps(body), content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_proposal_lists_the_matching_texts_and_forgets_nothing_yet(alice: User, api_client: Clients):
    life = live(alice)
    found = post(api_client(alice), f"{FORGET}/propose", query=f"forget that my favourite colour is {SECRET}")
    assert {item["id"] for item in found["items"]} == {str(life.told.pk), str(life.entry.pk)}
    assert {item["kind"] for item in found["items"]} == {"message", "entry"}
    assert all(SECRET in item["preview"] for item in found["items"])
    life.told.refresh_from_db()
    assert life.told.parts


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ("Meine Adresse ist Lindenweg 5.", "Vergiss Lindenweg 5!"),
        ("我的地址是西湖路5号。", "请忘记我的地址。"),
        ("Я живу в Омске на улице Мира.", "Забудь, что я живу в Омске."),
        ("내 주소는 한강로 5번지입니다.", "한강로 5번지를 잊어 주세요."),
        ("Bert is me negentig euro schuldig.", "Vergeet wat ik over Bert heb verteld"),
        ("Ayakkabı numaram 44.", "Ayakkabı numaramı unut"),
        ("बलदेव को मुझे नब्बे यूरो देने हैं।", "बलदेव के बारे में सब भूल जाओ"),
        ("我以前在湖边有一艘红色皮划艇。", "忘掉我有皮划艇这件事吧。"),
        ("ベンは私に九十ユーロ借りています。", "ベンについて話したことを忘れてください"),
    ],
)
def test_a_forget_request_in_another_language_finds_the_matching_message(
    alice: User, said: str, wish: str
) -> None:
    conversation = new_conversation(alice)
    [told, _] = say(conversation, said, "OK.")
    index_conversation(conversation.pk)
    proposal = propose_forgetting(alice, wish, now=NOW)
    assert [item["id"] for item in proposal.items] == [str(told.pk)]


def test_confirmed_items_are_forgotten_and_others_stay(alice: User, charlie: User, api_client: Clients):
    live(alice)
    found = post(api_client(alice), f"{FORGET}/propose", query=f"my favourite colour {SECRET}")
    chosen = {"proposal_id": found["proposal_id"], "item_ids": [item["id"] for item in found["items"]]}
    post(api_client(charlie), f"{FORGET}/confirm", status=404, **chosen)
    receipt = post(api_client(alice), f"{FORGET}/confirm", **chosen)
    assert receipt["what"] == "chosen"
    assert tables_with(SECRET) == []
    assert KEPT in MemoryEntry.objects.get().text, "the entry said that, too"
    again = post(api_client(alice), f"{FORGET}/confirm", **chosen)
    assert again == {**receipt, "proposal": None}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["message", "entry"])
def test_two_simultaneous_confirmations_return_one_receipt(
    alice: User, api_client: Clients, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    live(alice)
    client = api_client(alice)
    found = post(client, f"{FORGET}/propose", query=f"my favourite colour {SECRET}")
    ids = [item["id"] for item in found["items"] if item["kind"] == kind]
    chosen = {"proposal_id": found["proposal_id"], "item_ids": ids}
    real, faster = proposing.forget_chosen, list[dict]()

    def forget_chosen(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(proposing, "forget_chosen", real)
        faster.append(post(client, f"{FORGET}/confirm", **chosen))
        return real(*given, **named)

    monkeypatch.setattr(proposing, "forget_chosen", forget_chosen)
    second = post(client, f"{FORGET}/confirm", **chosen)
    assert [second] == [{**first, "proposal": None} for first in faster]
    assert ForgetReceipt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_many_confirmed_messages_and_an_entry_are_forgotten_in_pieces(
    alice: User, api_client: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    life, chat = live(alice), new_conversation(alice)
    said = say(chat, *(f"{SAID} I say so {number}." for number in range(MESSAGES + 5)), role="user")
    index_conversation(chat.pk)
    found = post(api_client(alice), f"{FORGET}/propose", query=f"my favourite colour is {SECRET}")
    ids = [item["id"] for item in found["items"]]
    assert {str(row.pk) for row in (life.entry, *said)} <= set(ids)
    real, sizes = forget_actions.lock_chosen, list[int]()

    def lock_chosen(chosen: Chosen, *given: Any, **named: Any) -> Any:
        sizes.append(len(chosen.message_ids))
        return real(chosen, *given, **named)

    monkeypatch.setattr(forget_actions, "lock_chosen", lock_chosen)
    post(api_client(alice), f"{FORGET}/confirm", proposal_id=found["proposal_id"], item_ids=ids)
    assert max(sizes) <= MESSAGES
    assert tables_with(SECRET) == []
    assert KEPT in MemoryEntry.objects.get().text
    plums = search_memory(user_id=alice.pk, query="plum tree", limit=5, now=NOW, zone=UTC)
    assert life.entry.pk in {item.entry_id for item in plums}
    receipt = ForgetReceipt.objects.get()
    assert receipt.removed["messages"] == len(ids) - 1
    assert receipt.removed["entries_redacted"] == 1
    assert "entries" not in receipt.removed


def test_only_proposed_items_can_be_confirmed(alice: User, api_client: Clients):
    life = live(alice)
    found = post(api_client(alice), f"{FORGET}/propose", query=f"my favourite colour {SECRET}")
    for item_ids in ([str(life.messages[2].pk)], []):
        post(
            api_client(alice),
            f"{FORGET}/confirm",
            status=422,
            proposal_id=found["proposal_id"],
            item_ids=item_ids,
        )


def test_a_forget_request_in_a_conversation_appends_one_event(alice: User):
    life = live(alice)
    chat = new_conversation(alice)
    asked, _ = say(
        chat, f"Please forget that my favourite colour is {SECRET}.", f"I will no longer think of {SECRET}."
    )
    index_conversation(chat.pk)
    for _ in range(2):
        forgetting_tasks.propose_forgetting(str(asked.pk))
    [event] = chat.events.filter(type="memory.forget_proposed")
    proposal = ForgetProposal.objects.get(pk=event.payload["proposal_id"])
    ids = {item["id"] for item in proposal.items}
    assert {str(life.told.pk), str(life.entry.pk)} <= ids
    assert str(asked.pk) not in ids
    assert SECRET not in json.dumps(event.payload)


def test_a_forget_request_whose_conversation_was_moved_to_the_trash_proposes_nothing(alice: User):
    chat = new_conversation(alice)
    asked, _ = say(chat, f"Please forget that my favourite colour is {SECRET}.", "Of course.")
    Conversation.objects.filter(pk=chat.pk).update(user=None)
    forgetting_tasks.propose_forgetting(str(asked.pk))
    assert not ForgetProposal.objects.exists()


def test_confirming_also_forgets_the_message_with_the_request_and_its_answer(
    alice: User, api_client: Clients
):
    live(alice)
    chat = new_conversation(alice)
    asked, answer = say(
        chat,
        f"Please forget that my favourite colour is {SECRET}.",
        f"Of course. I will no longer think of {SECRET}.",
    )
    Message.objects.filter(pk=answer.pk).update(parent=asked)
    forgetting_tasks.propose_forgetting(str(asked.pk))
    proposal = ForgetProposal.objects.get()
    ids = [item["id"] for item in proposal.items if item["id"] != str(answer.pk)]
    post(api_client(alice), f"{FORGET}/confirm", proposal_id=str(proposal.pk), item_ids=ids)
    assert tables_with(SECRET) == []
    answer.refresh_from_db()
    assert answer.parts == [], "it answered the wish"
    assert KEPT in str(list(Message.objects.values_list("parts", flat=True)))


@pytest.mark.sqlite
@pytest.mark.parametrize(("wish", "for_good"), [("Please forget that", False), ("Never remember that", True)])
def test_the_wording_of_a_request_in_a_conversation_decides_whether_it_is_for_good(
    alice: User, api_client: Clients, wish: str, for_good: bool
):
    live(alice)
    asked, _ = say(new_conversation(alice), f"{wish} my favourite colour is {SECRET}.", "Of course.")
    forgetting_tasks.propose_forgetting(str(asked.pk))
    proposal = ForgetProposal.objects.get()
    ids = [item["id"] for item in proposal.items]
    post(api_client(alice), f"{FORGET}/confirm", proposal_id=str(proposal.pk), item_ids=ids)
    assert set(Tombstone.objects.values_list("for_good", flat=True)) == {for_good}


@pytest.mark.parametrize(
    ("request_words", "text", "expected"),
    [
        ("gardening", "I like gardening.", True),
        ("gardens", "The garden is wet.", True),  # the stemmer finds both
        ("heliotropes", "My heliotrop fades.", True),  # a shorter form
        ("heliotr", "My heliotrope fades.", True),  # a longer form
        ("hel", "My heliotrope fades.", False),  # too short for a prefix
        ("heliotrope", "He said hel.", False),
        ("heliotrope quillfeather marzipan", "A heliotropium, and Quillfeather.", True),
        ("heliotrope quillfeather marzipan", "A heliotropium.", False),
    ],
)
def test_a_text_matches_most_of_the_words_in_longer_and_shorter_forms(
    request_words: str, text: str, expected: bool
) -> None:
    assert is_about(vocabulary.content_words_without_stops(request_words), text) == expected


LETTERS = st.text("xyz", min_size=1, max_size=7)


@settings(max_examples=200, deadline=None)
@given(words=st.frozensets(LETTERS, min_size=1, max_size=6), said=st.frozensets(LETTERS, max_size=12))
def test_words_match_if_one_is_a_prefix_of_the_other(words: frozenset[str], said: frozenset[str]) -> None:
    text = " ".join(sorted(said))
    telling = vocabulary.content_words(text)
    found = [
        word
        for word in words
        if any(
            one == word or (min(len(one), len(word)) >= 4 and (one.startswith(word) or word.startswith(one)))
            for one in telling
        )
    ]
    assert is_about(words, text) == (len(found) >= 0.6 * len(words))


@pytest.mark.sqlite
def test_a_forget_request_without_a_match_proposes_nothing(alice: User):
    chat = new_conversation(alice)
    say(chat, SAID, "Noted.")
    [asked] = say(chat, "forget that my cousin plays the oboe", role="user")
    forgetting_tasks.propose_forgetting(str(asked.pk))
    assert not chat.events.filter(type="memory.forget_proposed").exists()
