"""Texts recalled for a question keep their place in later requests, and later questions add only texts not in view."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chatapp.accounts.models import User
from chatapp.context.inspector import inspect_context
from chatapp.context.recalled import CHARS_PER_TOKEN
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.services import forget_message
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.recall.actions.indexing import index_entry
from chatapp.recall.models import RECALL_PREVIEW_CHARS
from chatapp.runs.actions.answering_again import regenerate_message
from memory.recall.ranking import LITTLE
from tests.context_engine.turns_by_hand import Turn, ask, compact_by_hand, import_notes

pytestmark = pytest.mark.django_db

FACTS = ("My violin was made by Stainer.", "The boiler was mended by Okonjo.", "Ivo's sister lives in Brest.")
QUESTIONS = ("Who made my violin?", "Who mended the boiler?", "Where does Ivo's sister live?")
WINDOW = {"context_size": 14_000, "max_output_tokens": 2_000}


def filler(count: int, words: int = 80) -> list[str]:
    """Return `count` texts that no question is about."""
    return [
        " ".join(f"padding{(number * 13 + step) % 997}" for step in range(words)) for number in range(count)
    ]


@pytest.fixture
def conversation(alice: User) -> Conversation:
    told = [text for fact in FACTS for text in (fact, "Good to know.", *filler(10))]
    conversation = import_notes(alice, *told, *filler(60), policy=WINDOW)
    compact_by_hand(conversation, 85)
    return conversation


def ask_all(user: User, conversation: Conversation) -> list[Turn]:
    return [ask(user, conversation, question) for question in QUESTIONS]


def sent_tokens(turn: Turn) -> int:
    """Return the tokens sent, without system prompt and tools, which the reserve covers."""
    parts = turn.context.parts
    return parts.total - parts.system - parts.tools


@pytest.mark.mechanism("ours.recall-in-place")
def test_each_request_begins_with_the_previous_request(alice: User, conversation: Conversation) -> None:
    turns = ask_all(alice, conversation)
    for before, after in pairwise(turns):
        assert after.request.startswith(before.request)
    assert all(fact in turns[-1].in_view for fact in FACTS)
    assert sent_tokens(turns[-1]) <= turns[-1].context.budget_tokens


@pytest.mark.mechanism("ours.recall-in-place")
def test_texts_in_view_are_not_recalled_again(alice: User, conversation: Conversation) -> None:
    first, again = (ask(alice, conversation, QUESTIONS[0]) for _ in range(2))
    assert any(FACTS[0] in text for text in first.recalled_texts)
    assert not set(first.recalled_texts) & set(again.recalled_texts)
    assert again.in_view.count(FACTS[0]) == 1


def test_the_inspector_shows_earlier_recalled_texts_with_their_source(
    alice: User, conversation: Conversation
) -> None:
    turn = ask(alice, conversation, QUESTIONS[0])
    shown = inspect_context(
        user=alice, conversation_id=str(conversation.pk), query=QUESTIONS[1], budget_tokens=None, model=None
    )
    recalled = [piece for piece in shown["messages"] if piece["source"] == "recall"]
    assert FACTS[0] in recalled[0]["content"]
    assert FACTS[1] in recalled[-1]["content"]
    assert sum(piece["tokens"] for piece in shown["messages"]) == shown["total_tokens"]
    assert shown["parts"]["recall"] == pytest.approx(sum(piece["tokens"] for piece in recalled), abs=3)
    previews = {item["preview"] for item in shown["recalled"]}
    assert {text[:RECALL_PREVIEW_CHARS] for text in turn.recalled_texts} <= previews


def test_a_question_recalls_at_most_recall_tokens_but_fills_an_explicit_budget(alice: User) -> None:
    told = [f"The depot has crate {number} of heliotrope paint." for number in range(300)]
    policy = {"context_size": 32_000, "max_output_tokens": 4_000, "recall_tokens": 500}
    conversation = import_notes(alice, *told, *filler(120, 150), policy=policy)
    asked = ask(alice, conversation, "Which crates of heliotrope paint has the depot?")
    assert 0 < asked.context.parts.recall <= 500
    shown = inspect_context(
        user=alice,
        conversation_id=str(conversation.pk),
        query="Which crates of heliotrope paint has the depot?",
        budget_tokens=4_000,
        model=None,
    )
    assert shown["parts"]["recall"] > 1_000


def test_a_forgotten_text_disappears_from_later_requests(alice: User, conversation: Conversation) -> None:
    ask(alice, conversation, QUESTIONS[0])
    source = Message.objects.get(conversation=conversation, position=0)
    forget_message(alice, source.pk, now=clock.now())
    after = ask(alice, conversation, QUESTIONS[1])
    assert FACTS[0] not in str(after.context.messages)


def test_a_changed_entry_is_not_quoted_by_its_old_span(alice: User, conversation: Conversation) -> None:
    now = clock.now()
    entry = MemoryEntry.objects.create(
        user=alice, day=now.date(), text="The kiln belongs to Wanda.", author="user", created_at=now
    )
    index_entry(entry)
    first = ask(alice, conversation, "Whose is the kiln?")
    assert "The kiln belongs to Wanda." in first.in_view
    entry.text = "Everything about the kiln was wrong."
    entry.save()
    assert "kiln" not in ask(alice, conversation, "ok").in_view


def test_a_branch_shows_the_texts_recalled_for_its_own_answer(
    alice: User, conversation: Conversation
) -> None:
    first = ask(alice, conversation, QUESTIONS[0])
    edited = ask(alice, conversation, QUESTIONS[1], replaces_id=str(first.question.pk))
    assert FACTS[1] in edited.in_view
    assert len([message for message in edited.context.messages if message.kind == "recall"]) == 1
    assert set(first.recalled_texts) != set(edited.recalled_texts)
    assert ask(alice, conversation, "ok").request.startswith(edited.request)


def test_a_regenerated_answer_does_not_inherit_the_texts_recalled_for_the_first(
    alice: User, conversation: Conversation
) -> None:
    first = ask(alice, conversation, QUESTIONS[0])
    regenerate_message(
        user=alice,
        conversation_id=str(conversation.pk),
        message_id=str(first.answer.pk),
        model=None,
        now=clock.now(),
    )
    loaded_again = inspect_context(
        user=alice, conversation_id=str(conversation.pk), query="ok", budget_tokens=None, model=None
    )
    assert FACTS[0] not in str([piece for piece in loaded_again["messages"] if piece["source"] == "recall"])


@pytest.mark.mechanism("ours.recall-in-place")
def test_a_compaction_removes_earlier_recalled_texts_and_its_undo_restores_them(
    alice: User, conversation: Conversation
) -> None:
    ask(alice, conversation, QUESTIONS[0])
    before = ask(alice, conversation, "ok")
    assert FACTS[0] in before.in_view
    row = compact_by_hand(conversation, 87)
    assert FACTS[0] not in ask(alice, conversation, "ok").in_view
    row.status = "undone"
    row.save()
    assert FACTS[0] in ask(alice, conversation, "ok").in_view


@pytest.mark.mechanism("ours.recall-in-place")
def test_recall_starts_anew_if_too_little_room_is_left(alice: User) -> None:
    lot = "of the lot that came by rail in the wet summer and was never paid for, as the porter says"
    crates = [f"Crate {number} holds heliotrope paint from Brest {lot}." for number in range(200)]
    kegs = [f"Keg {number} holds walnut oil from Kassel {lot}." for number in range(200)]
    conversation = import_notes(alice, *crates, *kegs, *filler(60), policy=WINDOW)
    compact_by_hand(conversation, 445)
    turns = [ask(alice, conversation, "Which crates hold heliotrope paint?")]
    while not turns[-1].recalled.starts_anew:
        subject = ("kegs hold walnut oil", "crates hold heliotrope paint")[len(turns) % 2]
        turns.append(ask(alice, conversation, f"Which {subject}?"))
        assert sent_tokens(turns[-1]) <= turns[-1].context.budget_tokens
        assert len(turns) < 12
    after = ask(alice, conversation, "ok")
    assert after.request.startswith(turns[-1].request)
    assert turns[-1].recalled.earlier == {}


@pytest.mark.mechanism("ours.recall-in-place")
def test_recall_starts_anew_if_characters_run_out_before_tokens(alice: User) -> None:
    columns = " " * 300  # one or two tokens by our estimate, 75 at 4 characters a token
    things = (
        "heliotrope paint",
        "walnut oil",
        "copper wire",
        "birch tar",
        "sailcloth",
        "candle wax",
        "pumice",
    )
    told = [f"Lot {number} of {thing}:{columns}paid." for thing in things for number in range(40)]
    conversation = import_notes(alice, *told, *filler(60), policy=WINDOW)
    compact_by_hand(conversation, len(told) + 45)
    turns = [ask(alice, conversation, f"Which lots of {thing} are paid?") for thing in things]
    for thing, turn in zip(things, turns, strict=True):
        assert sum(f"of {thing}" in text for text in turn.recalled_texts) > 2
        chars = sum(len(message.text) for message in turn.context.messages)
        budget = turn.context.inputs.budget
        assert chars <= CHARS_PER_TOKEN * (budget.context_size - budget.output_tokens)
        assert turn.context.view.recall_room - turn.context.parts.recall > turn.context.view.recall_tokens
    assert [turn.recalled.starts_anew for turn in turns].index(True) > 1


@pytest.mark.mechanism("ours.recall-gate")
def test_a_sent_question_is_no_evidence_for_its_own_recall(alice: User, conversation: Conversation) -> None:
    import_notes(alice, *(f"We had a great time in place{number}, as always." for number in range(60)))
    turn = ask(alice, conversation, "What is 3 times 4?")
    assert sum(recalled.tokens for recalled in turn.recalled.turns) <= LITTLE.tokens


@pytest.mark.mechanism("ours.recall")
def test_a_text_that_matches_part_of_a_long_question_is_recalled(
    alice: User, conversation: Conversation
) -> None:
    asked = "I am writing down the story of the instruments in our family: do you recall who made my violin, and when?"
    assert any(FACTS[0] in text for text in ask(alice, conversation, asked).recalled_texts)


@pytest.mark.mechanism("ours.recall-in-place")
def test_a_cut_removes_earlier_recalled_texts_as_a_compaction_does(
    alice: User, conversation: Conversation
) -> None:
    turns = [ask(alice, conversation, QUESTIONS[0])]
    assert FACTS[0] in turns[0].in_view
    long = " ".join(f"xylo{number}" for number in range(400))  # matches nothing
    while turns[-1].context.view.recalled_from == turns[0].context.view.recalled_from:
        turns.append(ask(alice, conversation, f"ok {long}"))
        assert len(turns) < 12
    view = turns[-1].context.view
    assert turns[0].question.pk.hex in {message.id.replace("-", "") for message in view.history if message.id}
    assert FACTS[0] not in turns[-1].in_view
    after = [ask(alice, conversation, question) for question in ("ok", QUESTIONS[0])]
    assert after[0].request.startswith(turns[-1].request)
    assert after[1].request.startswith(after[0].request)
    assert FACTS[0] in after[1].in_view
