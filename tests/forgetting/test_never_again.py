"""Forgotten text is not learned again from a repeated job, an import, the profile or a recall."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import claim_compaction, complete_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import FinishedSummary
from chatapp.conversations.models import Message
from chatapp.forgetting.models import Tombstone
from chatapp.forgetting.services import forget_message
from chatapp.long_term.actions.profile import lock_profile, set_text
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import LeaseLost
from chatapp.runs.actions.endings import Outcome, finish_run
from chatapp.runs.actions.runs import PartialAnswer, checkpoint_answers, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from tests.api.program import Program
from tests.context_engine.chatting import make_model, on_a_loop
from tests.context_engine.talking import Talk, talking, work
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import new_conversation, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

SECRET = "celadon"
SAID = f"My favourite colour is {SECRET}."
FILLER = (
    "We talk about the harbour, the choir and the price of bread for a long while, and nothing comes of it."
)
POLICY = {"keep_recent": 2, "reserve_ratio": 0.01}


def history(first: str = SAID, count: int = 40) -> list[dict[str, str]]:
    said = [first, "Noted.", *(f"{number}: {FILLER}" for number in range(count))]
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": text}
        for number, text in enumerate(said)
    ]


async def forget_first(user: User, conversation_id: str) -> None:
    message = await Message.objects.aget(conversation_id=conversation_id, position=0)
    await sync_to_async(forget_message)(user, message.pk, now=clock.now())


@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_importing_a_conversation_again_does_not_bring_forgotten_text_back(
    alice: User, alice_program: Program
) -> None:
    summary = says(f"The user's favourite colour is {SECRET}. They talk about the harbour.")
    with ModelServer(summary_default=summary) as server:
        await in_database(make_model)(server, name="Main", is_default=True)
        async with talking(alice_program, history(), context_policy=POLICY) as talk:
            await forget_first(alice, talk.id)
        async with talking(alice_program, history(), context_policy=POLICY) as again:
            await again.post("compact")
            assert await work() == 1
            [entry] = [row async for row in MemoryEntry.objects.filter(user=alice)]
            assert SECRET not in entry.text
            assert "harbour" in entry.text
            seen = await again.inspect("What is my favourite colour, please tell me?")
            recalled = [piece for piece in seen["messages"] if piece["source"] == "recall"]
            assert SECRET not in json.dumps(recalled)


def summary_row(user: User) -> Compaction:
    conversation = new_conversation(user)
    say(conversation, SAID, "Noted.", FILLER, "I see.")
    return Compaction.objects.create(
        conversation=conversation,
        branch=conversation.branch,
        first_position=0,
        last_position=3,
        message_count=4,
        kept_count=0,
        strategy="checkpoint",
        status="pending",
        created_at=clock.now(),
    )


@pytest.mark.django_db(transaction=True)
def test_a_summary_in_progress_cannot_write_text_forgotten_meanwhile(alice: User) -> None:
    row = summary_row(alice)
    lease = claim_compaction(compaction_id=row.pk, holder="a worker", now=clock.now())
    assert lease is not None
    message = row.conversation.messages.get(position=0)
    forget_message(alice, message.pk, now=clock.now())
    result = FinishedSummary(
        summary=SAID,
        summary_tokens=5,
        tokens_after=5,
        entry_text=SAID,
        first_message_id=message.pk,
        last_message_id=message.pk,
        calls=(),
    )
    with pytest.raises(LeaseLost):
        complete_compaction(lease=lease, result=result, now=clock.now())
    assert tables_with(SECRET) == []
    assert not MemoryEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_answer_in_progress_cannot_write_text_forgotten_meanwhile(alice: User) -> None:
    conversation = new_conversation(alice)
    message, _ = say(conversation, SAID, "Noted.")
    receipt = send_message(
        user=alice,
        conversation_id=str(conversation.pk),
        new=NewMessage("What is my favourite colour?"),
        model=None,
        now=clock.now(),
    )
    lease = claim_run(run_id=UUID(receipt.run_id), holder="a process", model_name="m", now=clock.now())
    assert lease is not None
    answer = PartialAnswer(lease, f"It is {SECRET}")
    checkpoint_answers(answers=[answer])
    forget_message(alice, message.pk, now=clock.now())
    checkpoint_answers(answers=[answer])
    with pytest.raises(LeaseLost):
        finish_run(lease=lease, outcome=Outcome(Run.Status.COMPLETE, answer), now=clock.now())
    run = Run.objects.get(pk=receipt.run_id)
    assert run.status == Run.Status.INTERRUPTED
    assert "forgotten" in run.error_message
    assert tables_with(SECRET) == []


def test_a_consolidation_does_not_learn_forgotten_text_again(alice: User) -> None:
    conversation = new_conversation(alice)
    message, _ = say(conversation, SAID, "Noted.")
    forget_message(alice, message.pk, now=clock.now())
    profile = lock_profile(alice.pk)
    set_text(
        profile,
        f"- The user's favourite colour is {SECRET}\n- Has a plum tree",
        ProfileVersion.Author.CONSOLIDATION,
        clock.now(),
    )
    assert profile.text == "- Has a plum tree"


def test_tombstones_are_hashes_and_each_user_has_their_own(alice: User, bob: User) -> None:
    conversation = new_conversation(alice)
    message, _ = say(conversation, SAID, "Noted.")
    forget_message(alice, message.pk, now=clock.now())
    assert tombstones_of(alice.pk).cover(SAID)
    assert not tombstones_of(bob.pk).cover(SAID)
    assert Tombstone.objects.filter(user=alice).count() == 1
    assert tables_with(SECRET) == []


@asynccontextmanager
async def forgotten_and_then(
    user: User, program: Program, *said: str, imported: bool = False, for_good: str = ""
) -> AsyncIterator[Talk]:
    """Forget the colour in one conversation, say these texts in another one, compact that one and yield it."""
    summary = says(f"The user's favourite colour is {SECRET}. They talk about the harbour.")
    with ModelServer(summary_default=summary) as server, override_settings(DEFAULT_TOOLS=[]):
        await in_database(make_model)(server, name="Main", is_default=True)
        async with talking(program, history(), context_policy=POLICY) as talk:
            if for_good:
                await FOR_GOOD[for_good](program, talk.id)
            else:
                await forget_first(user, talk.id)
        before = history(said[0], 2) if imported else history("Good morning.", 2)
        async with talking(program, before, context_policy=POLICY) as again:
            for text in () if imported else said:
                await again.ask(text)
            for number in range(3):
                await again.ask(f"{number}: {FILLER}")
            await again.post("compact")
            assert await work() == 1
            yield again


async def confirm_a_wish(program: Program, conversation: str) -> None:
    wish = await program.post("memory/forget/propose", query=f"never remember that {SAID}")
    items = [item["id"] for item in wish.json()["items"]]
    confirmed = await program.post(
        "memory/forget/confirm", proposal_id=wish.json()["proposal_id"], item_ids=items, for_good=True
    )
    assert confirmed.status_code == 200, confirmed.content


async def forget_the_message(program: Program, conversation: str) -> None:
    page = await program.get(f"conversations/{conversation}/messages")
    [message] = [item["id"] for item in page.json()["items"] if item["content"] == SAID]
    await forget_at_once(program, message_id=message)


async def forget_the_conversation(program: Program, conversation: str) -> None:
    await forget_at_once(program, conversation_id=conversation)


async def forget_the_day(program: Program, conversation: str) -> None:
    page = await program.get(f"conversations/{conversation}/messages")
    [said_at] = [item["created_at"] for item in page.json()["items"] if item["content"] == SAID]
    await forget_at_once(program, day=said_at[:10])


async def forget_all_there_is(program: Program, conversation: str) -> None:
    await program.post("memory/entries", text=SAID)
    await forget_at_once(program, everything=True)


async def forget_at_once(program: Program, **what: object) -> None:
    answer = await program.post("memory/forget", for_good=True, **what)
    assert answer.status_code == 200, answer.content


FOR_GOOD = {
    "wish": confirm_a_wish,
    "message": forget_the_message,
    "conversation": forget_the_conversation,
    "day": forget_the_day,
    "everything": forget_all_there_is,
}


async def learned(user: User) -> str:
    return "\n".join([row.text async for row in MemoryEntry.objects.filter(user=user)])


@pytest.mark.mechanism("forgetting.never-again")
@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_forgotten_text_is_learned_again_if_its_user_asks_to_remember_it(
    alice: User, alice_program: Program
) -> None:
    async with forgotten_and_then(
        alice, alice_program, f"By the way. Please remember that my favourite colour is {SECRET}."
    ) as talk:
        assert SECRET in await learned(alice)
        other = await alice_program.post("conversations")
        seen = await Talk(talk.program, other.json()["id"]).inspect("What is my favourite colour?")
        assert SECRET in str(seen["recalled"])


@pytest.mark.sqlite
@pytest.mark.mechanism("forgetting.never-again")
@pytest.mark.parametrize(
    "said",
    [
        SAID,
        f"By the way, my favourite colour is {SECRET}.",
        f"Do you remember that my favourite colour is {SECRET}?",
        f"Is my favourite colour {SECRET}?",
        f"Forget that my favourite colour is {SECRET}.",
        "What is my favourite colour?",
    ],
)
@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_repeating_forgotten_text_without_asking_to_remember_it_does_not_teach_it(
    alice: User, alice_program: Program, said: str
) -> None:
    async with forgotten_and_then(alice, alice_program, said):
        assert SECRET not in await learned(alice)


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_forgotten_text_in_an_import_is_not_learned(alice: User, alice_program: Program) -> None:
    async with forgotten_and_then(alice, alice_program, SAID, imported=True):
        assert SECRET not in await learned(alice)


@pytest.mark.mechanism("forgetting.never-again")
@pytest.mark.parametrize(
    "forgotten",
    [
        pytest.param(way, marks=[] if way in ("wish", "everything") else pytest.mark.sqlite)
        for way in FOR_GOOD
    ],
)
@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_text_forgotten_for_good_is_not_learned_even_if_the_user_asks_to_remember_it(
    alice: User, alice_program: Program, forgotten: str
) -> None:
    wish = f"Remember that my favourite colour is {SECRET}."
    async with forgotten_and_then(alice, alice_program, wish, for_good=forgotten):
        assert SECRET not in await learned(alice)


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
@on_a_loop
async def test_a_fact_about_somebody_else_that_shares_words_is_learned_and_recalled(
    alice: User, alice_program: Program
) -> None:
    other = "My daughter has a peanut allergy; ask every restaurant."
    with ModelServer(summary_default=says(other)) as server, override_settings(DEFAULT_TOOLS=[]):
        await in_database(make_model)(server, name="Main", is_default=True)
        async with talking(
            alice_program, history("I have a peanut allergy.", 2), context_policy=POLICY
        ) as talk:
            await forget_first(alice, talk.id)
        async with talking(alice_program, history(other), context_policy=POLICY) as talk:
            await talk.post("compact")
            assert await work() == 1
        assert other in await learned(alice)
        chat = await alice_program.post("conversations")
        seen = await Talk(alice_program, chat.json()["id"]).inspect("Who has a peanut allergy?")
        assert other in str(seen["recalled"])


def test_tombstones_are_listed_without_text_and_can_be_lifted(
    alice: User, bob: User, alice_client: Client
) -> None:
    message, _ = say(new_conversation(alice), f"{SAID} My dog is called Rex.", "Noted.")
    forget_message(alice, message.pk, now=clock.now(), for_good=True)
    [item] = alice_client.get("/api/v1/memory/not-learned").json()["items"]
    assert (item["kind"], item["count"], item["for_good"]) == ("message", 2, True)
    assert SECRET not in json.dumps(item)
    theirs, _ = say(new_conversation(bob), SAID, "Noted.")
    done = forget_message(bob, theirs.pk, now=clock.now())
    assert alice_client.delete(f"/api/v1/memory/not-learned/{done.receipt.pk}").status_code == 404
    assert alice_client.delete(f"/api/v1/memory/not-learned/{item['id']}").status_code == 204
    assert alice_client.get("/api/v1/memory/not-learned").json()["items"] == []
    assert not tombstones_of(alice.pk)
    assert tombstones_of(bob.pk).cover(SAID)


@pytest.mark.django_db(transaction=True)
def test_tombstones_are_read_once_for_each_change(alice: User) -> None:
    """Each recall and each summary needs the tombstones, which may be many."""
    store_tombstones(make_tombstones(alice.pk, [SAID], clock.now()))
    assert tombstones_of(alice.pk).cover(SAID)
    with CaptureQueriesContext(connection) as sent:
        assert tombstones_of(alice.pk).cover(SAID)
    assert [query["sql"] for query in sent if '"words"' in query["sql"]] == []
    other = "The plum tree blooms in March 2027."
    store_tombstones(make_tombstones(alice.pk, [other], clock.now()))
    assert tombstones_of(alice.pk).cover(other)
    Tombstone.objects.filter(user=alice).delete()
    assert not tombstones_of(alice.pk)
