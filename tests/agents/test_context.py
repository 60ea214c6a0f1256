"""The assembled request: its order, its stable prefix, and the description of its pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.chat_models.wire import write_messages
from agents.requests.context import AssembledContext
from agents.types import ToolSpec
from memory.summaries.summary import fence
from memory.tokens import text_message
from memory.types import Checkpoint, ImagePart, TextPart
from tests.agents.asking import assemble, history_of, make_inputs, stored

CHECKPOINT = Checkpoint("c1", "Ada plans a trip to Lisbon in May.", 9, 10, 12)
RECALL = text_message("user", fence("recalled", "2026-05-01\nuser: The budget is 900 EUR."), kind="recall")


def make_context(count: int = 20) -> AssembledContext:
    messages = tuple(message for message in history_of(count) if (message.position or 0) > 9)
    return assemble(make_inputs(messages, checkpoint=CHECKPOINT))


@pytest.mark.mechanism("agentscope.order")
def test_the_order_is_system_summary_history_recall_question() -> None:
    context = replace(make_context(), recall=RECALL)
    sources = [piece.source for piece in context.pieces]
    assert sources == ["system", "summary", *["history"] * 10, "recall", "question"]


def test_the_request_ends_with_the_unchanged_question() -> None:
    assert replace(make_context(), recall=RECALL).request.messages[-1].text == "What now?"


def test_the_pieces_add_up_to_the_total() -> None:
    context = replace(make_context(), recall=RECALL)
    assert sum(piece.tokens for piece in context.pieces) == context.total_tokens == context.parts.total


@pytest.mark.mechanism("ours.prefix")
def test_consecutive_requests_share_their_prefix() -> None:
    history = history_of(100, words=20)
    first = assemble(make_inputs(history, "First question?"))
    later = (*history, stored(100, "First question?"), stored(101, "An answer."))
    second = assemble(make_inputs(later, "Second question?"))
    first_wire = write_messages(first.request.messages)
    second_wire = write_messages(second.request.messages)
    assert second_wire[: len(first_wire)] == first_wire


@pytest.mark.mechanism("ours.prefix-recall")
def test_recalled_text_does_not_change_the_messages_before_it() -> None:
    plain = write_messages(make_context().request.messages)
    recalled = write_messages(replace(make_context(), recall=RECALL).request.messages)
    assert recalled[: len(plain) - 1] == plain[:-1]
    assert recalled[-1] == plain[-1]


def test_the_window_has_room_for_the_answer() -> None:
    context = make_context()
    request = context.request
    assert 0 < request.max_output_tokens <= context.inputs.budget.context_size - context.total_tokens


def test_tools_are_counted_and_offered() -> None:
    tool = ToolSpec("clock", "Tells the time of day in a place.", {"type": "object", "properties": {}})
    context = assemble(replace(make_inputs(history_of(4)), tools=(tool,)))
    assert context.parts.tools > 0
    assert context.request.tools == (tool,)


def test_an_image_in_view_gets_its_data_url() -> None:
    inputs = make_inputs(history_of(2))
    question = replace(inputs.question, parts=(TextPart("Look"), ImagePart("f1", "image/png")))
    context = replace(
        assemble(replace(inputs, question=question)), data_urls={"f1": "data:image/png;base64,AAAA"}
    )
    assert context.image_ids == ("f1",)
    image = context.request.messages[-1].parts[1]
    assert isinstance(image, ImagePart)
    assert image.data_url == "data:image/png;base64,AAAA"
