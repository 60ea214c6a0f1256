from collections.abc import Sequence
from datetime import UTC

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.analysis import questions
from chatapp.recall.selectors.user_index import open_index
from chatapp.recall.turn_recall import InContext, RecalledTurn, recall_for
from memory.recall.questions import QuestionReader
from memory.recall.ranking import LITTLE, RecallSize
from tests.memory_store.rows import NOW, new_conversation, say
from tests.search.test_search_index import filler

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

QUESTION = "Which violin did I buy?"


@pytest.fixture
def conversation(alice: User) -> Conversation:
    conversation = new_conversation(alice)
    say(
        conversation,
        "I bought a violin by Stainer.",
        "Lovely!",
        *filler(40),
        "The violin needs a new string.",
    )
    return conversation


def recalled(user: User, question: str = QUESTION, budget_tokens: int = 400, **context: object):
    room = RecallSize(budget_tokens, 4 * budget_tokens)
    return recall_for(user_id=user.pk, question=question, now=NOW, room=room, context=InContext(**context))  # type: ignore[arg-type]


def is_little(turns: Sequence[RecalledTurn]) -> bool:
    return sum(turn.tokens for turn in turns) <= LITTLE.tokens


def texts_of(turns: Sequence[RecalledTurn]) -> list[str]:
    """Return the texts without their speakers."""
    return [turn.text.partition(": ")[2] for turn in turns]


@pytest.mark.mechanism("agentscope.read-back")
def test_relevant_turns_are_recalled_in_chronological_order(alice: User, conversation: Conversation):
    turns = recalled(alice)
    texts = texts_of(turns)
    assert texts.index("I bought a violin by Stainer.") < texts.index("The violin needs a new string.")
    assert [turn.said_at for turn in turns] == sorted(turn.said_at for turn in turns)
    assert turns[0].source["kind"] == "message"
    assert turns[0].source["conversation_id"] == str(conversation.pk)


@pytest.mark.mechanism("ours.recall-budget")
@pytest.mark.parametrize("budget", [0, 10, 40, 400])
def test_recall_stays_within_the_budget(alice: User, conversation: Conversation, budget: int):
    assert sum(turn.tokens for turn in recalled(alice, budget_tokens=budget)) <= budget


@pytest.mark.parametrize(
    "said", ["Thanks!", "ok", "Great, thank you so much.", "👍", "hello", "qwertz asdfgh"]
)
def test_small_talk_and_nonsense_recall_nothing(alice: User, conversation: Conversation, said: str):
    assert recalled(alice, said) == []


def test_a_question_in_other_words_recalls_a_few_of_the_newest_turns(alice: User, conversation: Conversation):
    say(conversation, "Do you like tea?", "Signe has been vegan since spring.", *filler(200))
    found = recalled(alice, "Does anyone avoid cheese?")
    assert found
    assert is_little(found)
    assert recalled(alice, "Does Zoe avoid cheese?") == []


def test_turns_that_share_a_name_with_the_best_are_recalled_if_few_others_are(alice: User):
    moved = "Keziah has moved. She's in Durham these days."
    say(new_conversation(alice), "My sister Keziah lives in Leeds.", "A fine town.", *filler(40), moved)
    assert moved in texts_of(recalled(alice, "Where does my sister live now?", 2_000))


@pytest.mark.mechanism("ours.recall-gate")
def test_a_remark_does_not_recall_earlier_remarks(alice: User, conversation: Conversation):
    say(conversation, "Hoe gaat het?", "Prima!", "Dat geeft niets.", "Geweldig.")
    assert recalled(alice, "Haha, geweldig") == []


def test_another_form_of_a_word_is_found(alice: User, conversation: Conversation):
    say(conversation, "We drove to the Jura.", *filler(20))
    assert "We drove to the Jura." in texts_of(recalled(alice, "Where did we drive?"))


def test_an_answer_scores_higher_than_the_turn_before_its_question(alice: User):
    say(
        new_conversation(alice),
        *filler(40),
        "The tram is late.",
        "Where do you keep your accordion? [photo: a shelf]",
        "Under my bed.",
        *filler(40),
    )
    scores = {turn.text.partition(": ")[2]: turn.score for turn in recalled(alice, "Where is the accordion?")}
    assert scores["Under my bed."] > scores["The tram is late."]


def test_a_request_recalls_its_subject_and_little_for_its_verb(alice: User, conversation: Conversation):
    say(conversation, "Please explain the difference to me.", "Which difference?", *filler(20))
    assert is_little(recalled(alice, "Explain the difference between a monad and a functor", 2_000))
    assert "I bought a violin by Stainer." in texts_of(recalled(alice, "Write a poem about my violin"))


@pytest.mark.mechanism("ours.recall-gate")
@pytest.mark.parametrize(
    "question",
    [
        "How does photosynthesis work?",
        "What is the time complexity of quicksort?",
        "What time is it?",
        "What is the name for a number like that?",
    ],
)
def test_a_general_question_recalls_little_for_one_common_word(
    alice: User, conversation: Conversation, question: str
):
    say(conversation, "I work at night, it is a quiet time.", "I knead the dough by hand.", *filler(20))
    say(conversation, "The elements of style.", *filler(20))
    assert is_little(recalled(alice, question, 2_000))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I work?", "I work at the old bakery."),
        ("What did the doctor say about the knee?", "The doctor saw the knee and sent us home."),
        ("Which car does Tomas's brother polish?", "Tomas has a brother who polishes cars."),
        ("Wie heisst mein Hund?", "Mein Hund ist Rex."),
        ("When is the dentist appointment?", "I see the dentist on 4 May at ten."),
        ("What does the landlord charge for rent?", "Our landlord wants 900 euros a month."),
        ("Where does Peter go to school?", "Peter started at Lincoln High."),
        ("What is anna's job?", "Anna is a nurse at the clinic."),
        ("Which vaccine does the cat need?", "The cat gets her rabies shot in May."),
        ("Tell me her name", "My sister, her name is Greta."),
    ],
)
def test_a_question_about_known_people_or_things_recalls_the_answer(
    alice: User, conversation: Conversation, question: str, answer: str
):
    say(conversation, answer, *filler(20))
    assert answer in texts_of(recalled(alice, question))


def is_clear(user: User, question: str) -> bool:
    return open_index(user.pk).rank(questions.read(question, NOW.date()), 10, zone=UTC).is_clear


def test_a_name_that_was_said_once_is_clear_evidence(alice: User, conversation: Conversation):
    say(conversation, "We climbed up to Yuntai.", *filler(20))
    assert is_clear(
        alice, "When I took photos in Mount Yuntai, what trouble did I encounter, and who helped me?"
    )
    assert not is_clear(alice, "When I took photos in Mount Huashan, what trouble did I encounter?")


@pytest.mark.mechanism("ours.recall-gate")
def test_short_numbers_are_no_evidence(alice: User, conversation: Conversation):
    say(
        conversation,
        *("It was a good time, as ever.", *filler(3)) * 8,
        "The 3 of us had a good time.",
        *filler(20),
    )
    assert not is_clear(alice, "What is 3 times 4?")


@pytest.mark.mechanism("ours.recall-gate")
def test_missing_words_weaken_the_evidence_for_a_chinese_question(alice: User, conversation: Conversation):
    say(conversation, "我每天早上去公园进行锻炼。", "很好。", *filler(20))
    assert not is_clear(alice, "光合作用是怎么进行的？")
    assert is_clear(alice, "我每天早上去公园做什么？")


ON_BOARD = [
    "anchor",
    "barrel",
    "candle",
    "drum",
    "engine",
    "fiddle",
    "goat",
    "hammer",
    "iron",
    "jug",
    "kettle",
    "oar",
]


@pytest.mark.mechanism("ours.recall-budget")
def test_clear_evidence_takes_less_room_if_there_is_a_token_maximum(alice: User):
    whole = f"On board are {', '.join(ON_BOARD)}."
    some = (f"We saw {' and '.join((ON_BOARD * 2)[at : at + 6])} on trip{at}." for at in range(12))
    apart = [text for one in some for text in (one, *filler(9))]
    say(new_conversation(alice), *filler(50), whole, *filler(20), *apart)
    clear, vague = f"Was there {', '.join(ON_BOARD)} on board?", "What did we see of the oar?"
    room = RecallSize(400, 1_600)

    def tokens_for(question: str, most: int | None) -> int:
        turns = recall_for(user_id=alice.pk, question=question, now=NOW, room=room, most_tokens=most)
        return sum(turn.tokens for turn in turns)

    assert 0 < tokens_for(clear, 400) < tokens_for(clear, None) == tokens_for(clear, 3_000)
    assert 0 < tokens_for(vague, 400) == tokens_for(vague, None)
    assert whole in texts_of(recalled(alice, clear))


def test_evidence_may_be_spread_over_two_adjacent_turns(alice: User, conversation: Conversation):
    say(
        conversation,
        *filler(20),
        "My nephew visits us.",
        "We watched a cartoon.",
        *filler(20),
        "The oboe.",
        *filler(20),
    )
    assert is_clear(alice, "which cartoon did my nephew recommend, praise or dislike?")
    assert not is_clear(alice, "which oboe did my nephew recommend, praise or dislike?")


def test_a_year_without_turns_recalls_nothing(alice: User, conversation: Conversation):
    assert recalled(alice, "Who was pope in 1998?") == []
    assert recalled(alice, f"What happened in {NOW.year}?")


def test_turns_of_the_person_asked_about_are_recalled_without_other_matches(
    alice: User, conversation: Conversation
):
    say(conversation, "Ben: Any news, Ann?", "Ann: I am playing Xenoblade.", *filler(20))
    assert "Ann: I am playing Xenoblade." in texts_of(recalled(alice, "Which console does Ann own?"))
    assert recalled(alice, "Which console does Zoe own?") == []


@pytest.mark.mechanism("ours.recall-once")
def test_turns_in_the_context_are_not_recalled(alice: User, conversation: Conversation):
    first = conversation.messages.get(position=0)
    texts = texts_of(recalled(alice, conversation_id=conversation.pk, message_ids={str(first.pk)}))
    assert "I bought a violin by Stainer." not in texts
    assert "The violin needs a new string." in texts


@pytest.mark.mechanism("ours.branches")
def test_other_branches_of_the_conversation_are_not_recalled(alice: User, conversation: Conversation):
    fork = Branch.objects.create(conversation=conversation, lineage=[[str(conversation.branch_id), 10]])
    texts = texts_of(recalled(alice, conversation_id=conversation.pk, branch=fork))
    assert "I bought a violin by Stainer." in texts
    assert "The violin needs a new string." not in texts


@pytest.mark.mechanism("ours.recall-once")
def test_a_repeated_text_is_recalled_once(alice: User, conversation: Conversation):
    say(new_conversation(alice), "I bought a violin by  Stainer.")
    texts = [" ".join(text.split()) for text in texts_of(recalled(alice))]
    assert texts.count("I bought a violin by Stainer.") == 1


@pytest.mark.mechanism("ours.recall")
def test_other_conversations_are_recalled(alice: User, conversation: Conversation):
    elsewhere = new_conversation(alice)
    texts = texts_of(recalled(alice, conversation_id=elsewhere.pk, branch=elsewhere.branch))
    assert "I bought a violin by Stainer." in texts


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_question_is_not_analysed_if_the_context_shows_all_messages(
    alice: User, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
):
    first = new_conversation(alice)
    say(first, "I bought a violin by Stainer.", "Lovely!", QUESTION)
    if is_indexed:
        index_conversation(first.pk)
    shown = frozenset(str(key) for key in Message.objects.values_list("pk", flat=True))
    analysed: list[str] = []
    read = QuestionReader.read
    monkeypatch.setattr(
        QuestionReader, "read", lambda self, text, today: analysed.append(text) or read(self, text, today)
    )
    assert recalled(alice, message_ids=shown, conversation_id=first.pk, branch=first.branch) == []
    assert analysed == []
    say(new_conversation(alice), "The violin needs a new string.")
    assert "The violin needs a new string." in texts_of(recalled(alice, message_ids=shown))
    assert analysed == [QUESTION]
