"""Loading a history: its queries, the calibration of estimates, and requests that cannot be sent."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.loading import DbMemory, load_history
from chatapp.conversations.models import Branch, Conversation
from chatapp.operations.database.threads import in_database
from chatapp.providers.calibration import store_token_counts
from chatapp.providers.models import ModelConfig
from chatapp.realtime.models import Event
from memory.window.loading import NOTHING_LEFT_OUT, LoadLimits
from tests.api.running import send
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.memory_store.rows import finished_compaction, new_conversation, say
from tests.servers.behaviour import says

pytestmark = pytest.mark.django_db(transaction=True)


LIMITS = LoadLimits(window=8_000, uncut=6_000, tail=800, keep_recent=10)


def load(branch: Branch, before: int) -> DbMemory:
    return load_history(branch, before_position=before, budget_tokens=8_000, limits=LIMITS)


def loaded_after(user: User, count: int, tokens: int = 50) -> tuple[DbMemory, int]:
    """Return the history of a new conversation of `count` messages, and how many queries loading it took."""
    conversation = new_conversation(user)
    say(conversation, *(f"Note {number}: some words." for number in range(count)))
    conversation.messages.update(token_estimate=tokens)
    branch = Branch.objects.get(pk=conversation.branch_id)
    with CaptureQueriesContext(connection) as queries:
        history = load(branch, count)
    return history, len(queries)


@pytest.mark.mechanism("fim.load")
def test_a_history_that_fits_into_a_request_is_loaded_whole(alice: User) -> None:
    history, queries = loaded_after(alice, 120)
    assert len(history.messages) == 120
    assert history.left_out == NOTHING_LEFT_OUT
    assert queries <= 4


@pytest.mark.mechanism("fim.load")
def test_only_the_newest_part_of_a_longer_history_is_loaded(alice: User) -> None:
    for count in (1_000, 6_000):
        history, queries = loaded_after(alice, count)
        assert queries <= 6
        assert 16 <= len(history.messages) <= 36, "the tail, and an eighth of the budget at most"
        assert history.messages[0].role == "user"
        assert history.messages[-1].text == f"Note {count - 1}: some words."
        left_out = history.left_out
        assert left_out.count == count - len(history.messages)
        assert left_out.last_position + 1 == history.messages[0].position
        assert LIMITS.uncut < left_out.tokens + 50 * len(history.messages) <= 50 * count
        assert len(left_out.sample) == 32
        assert left_out.sample[0].text == "Note 0: some words."
        assert left_out.sample[-1].position == left_out.last_position


def test_the_newest_messages_are_loaded_however_large_they_are(alice: User) -> None:
    history, _ = loaded_after(alice, 40, tokens=9_000)
    assert [message.position for message in history.messages] == list(range(30, 40))


@pytest.mark.mechanism("fim.load-compacts")
def test_a_checkpoint_counts_the_messages_of_the_checkpoints_before_it(alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, *(f"Note {number}." for number in range(40)))
    assert conversation.branch is not None
    first, second = (finished_compaction(conversation, number, "Notes.") for number in (9, 19))
    undone = finished_compaction(conversation, 29, "Notes.")
    Compaction.objects.filter(pk__in=[first.pk, second.pk]).update(message_count=10, budget_tokens=8_000)
    Compaction.objects.filter(pk=second.pk).update(previous=first)
    Compaction.objects.filter(pk=undone.pk).update(message_count=10, previous=second, status="undone")
    history = load(conversation.branch, 40)
    assert history.checkpoint is not None
    assert (history.checkpoint.last_position, history.checkpoint.message_count) == (19, 20)
    assert len(history.messages) == 20


def test_an_answer_in_progress_is_not_loaded(alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, "First", "Answer", "Question")
    say(conversation, "Half an", status="streaming")
    assert conversation.branch is not None
    assert [message.text for message in load(conversation.branch, 4).messages] == [
        "First",
        "Answer",
        "Question",
    ]


@pytest.mark.sqlite
@pytest.mark.mechanism("fim.calibration")
@on_a_loop
async def test_each_response_corrects_the_estimate_of_its_model(alice: User) -> None:
    async with chatting(alice) as chat:
        before = (await chat.see())["total_tokens"]
        for _ in range(5):
            chat.server.script(says("Good.", prompt_tokens=int(before * 1.5)))
            await chat.ask("Go on.")
        await in_database(store_token_counts)()
        learned = await ModelConfig.objects.aget(name="Main")
        assert learned.token_ratio_samples == 5
        assert 1.3 < learned.token_ratio < 1.6
        assert (await chat.see())["total_tokens"] > 1.3 * before


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.too-large")
@on_a_loop
async def test_a_question_that_cannot_fit_is_refused_before_any_model_call(alice: User) -> None:
    async with chatting(alice, context_size=16_000, max_output_tokens=2_000) as chat:
        run = await failed_run(chat, "word " * 30_000)
        assert run["error"]["category"] == "too_large"
        assert run["error"]["message"].startswith("Your message is too large: about ")
        assert not chat.server.requests_of("chat")
        assert (await chat.ask("A short one?"))["message"]["status"] == "complete"


@pytest.mark.sqlite
@pytest.mark.mechanism("fim.errors")
@on_a_loop
async def test_invalid_settings_are_reported_in_the_answer(alice: User) -> None:
    async with chatting(alice) as chat:
        rows = Conversation.objects.filter(pk=chat.conversation)
        await rows.aupdate(context_policy={"strategy": "magic"})
        run = await failed_run(chat, "Hello?")
        assert run["error"]["category"] == "settings"
        assert "strategy (conversation)" in run["error"]["message"]
        await rows.aupdate(context_policy={})
        assert (await chat.ask("Hello?"))["message"]["status"] == "complete"


async def failed_run(chat: Chat, question: str) -> dict[str, Any]:
    answer = await send(chat.program, chat.conversation, question)
    assert answer.status_code >= 400, answer.content
    conversation = await Conversation.objects.aget(pk=chat.conversation)
    run = await conversation.runs.order_by("-created_at").afirst()
    assert run is not None
    told = (await chat.program.get(f"runs/{run.pk}")).json()
    assert told["status"] == "failed"
    return dict(told)


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.left-out")
@on_a_loop
async def test_messages_left_out_without_a_summary_are_reported(alice: User) -> None:
    small = {"context_size": 16_000, "max_output_tokens": 2_000, "context_policy": {"auto_compact": False}}
    async with chatting(alice, count=400, padding=30, **small) as chat:
        assert (await chat.ask())["message"]["status"] == "complete"
        told = await Event.objects.aget(type="run.notice")
        assert told.payload["kind"] == "truncated"
        assert "oldest messages were left out" in told.payload["text"]


@pytest.mark.sqlite
@pytest.mark.mechanism("ours.left-out")
@on_a_loop
async def test_messages_cut_while_their_summary_is_pending_are_reported(alice: User) -> None:
    small = {"context_size": 16_000, "max_output_tokens": 2_000}
    async with chatting(alice, count=400, padding=30, **small) as chat:
        assert (await chat.ask())["message"]["status"] == "complete"
        told = await Event.objects.aget(type="run.notice")
        assert "until its oldest messages are summarised, an extract replaces them" in told.payload["text"]
        contexts = [event.payload async for event in Event.objects.filter(type="context")]
        assert contexts
        assert all(context["left_out"] > 300 for context in contexts)
        assert await Event.objects.filter(type="compact", payload__state="started").aexists()


@pytest.mark.mechanism("ours.left-out")
@on_a_loop
async def test_left_out_messages_are_reported_with_their_last_position(alice: User) -> None:
    """The notice, the event and the inspector do so before a summary begins, so that the page can draw its divider."""
    small = {"context_size": 16_000, "max_output_tokens": 2_000}
    long = "Nothing that needs to be remembered is said in these words. " * 100
    said = [*(["Hello.", "Hello!"] * 4), *(long for _ in range(8))]
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    async with chatting(alice, count=2, **small) as chat:
        made = await chat.program.post("conversations/import", messages=messages)
        short = Chat(chat.program, chat.server, made.json()["id"])
        assert (await short.ask())["message"]["status"] == "complete"
        assert (await Event.objects.aget(type="run.notice")).payload["kind"] == "truncated"
        told = [event.payload async for event in Event.objects.filter(type="context")]
        assert [(each["left_out"], each["left_out_last_position"]) for each in told] == [(6, 5)] * len(told)
        seen = await short.see("")
        assert seen["left_out_last_position"] == seen["left_out"] - 1 >= 5
