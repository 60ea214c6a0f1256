"""Large results and images: the part shown to the model, and where the rest is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from agents.chat_models.wire import write_messages
from agents.tools.protocol import ToolFailure, ToolImage, ToolOutput, ToolTraits
from memory.types import ToolResultPart
from tests.agents.asking import text_of
from tests.agents.looping import results_of, run
from tests.agents.scripted_model import ScriptedModel
from tests.agents.tooling import FakeTool, World, calls


@pytest.mark.mechanism("holmes.oversized")
async def test_a_large_result_is_stored_and_shown_in_part_with_a_hint_to_read_on() -> None:
    world = World()
    text = "head " + "x y z " * 50_000 + "tail"
    model = ScriptedModel([calls(("look_up", {}))])
    await run(model, FakeTool(answer=lambda arguments: text), FakeTool("offloaded_page"), world=world)
    [shown] = results_of(model)
    [reference] = world.texts
    assert world.texts[reference] == text
    assert shown.startswith("head x y z")
    assert "tail" in shown
    assert reference in shown
    assert "of 300,009 characters" in shown
    assert "offloaded_page" in shown
    assert "do not guess" in shown
    assert len(shown) < 60_000


@pytest.mark.mechanism("digitorn.arrays")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda rows: rows,
        lambda rows: {"status": "ok", "rows": rows},
        lambda rows: {"tags": list(range(300)), "rows": rows, "status": "ok"},
        lambda rows: {"status": "ok", "data": {"rows": rows, "total": 5_000}},
    ],
)
async def test_a_long_list_is_cut_after_whole_items(wrap: Any) -> None:
    rows = wrap([{"id": number, "name": "somebody or other"} for number in range(5_000)])
    model = ScriptedModel([calls(("look_up", {}))])
    await run(model, FakeTool(answer=lambda arguments: json.dumps(rows)), tool_result_limit=3_000)
    body, note = results_of(model)[0].rsplit("\n\n[Showing ", 1)
    shown = json.loads(body)
    items = shown if isinstance(shown, list) else shown.get("data", shown)["rows"]
    assert items == [{"id": number, "name": "somebody or other"} for number in range(len(items))]
    assert 50 < len(items) < 400
    assert note.startswith(f"{len(items):,} of 5,000 items")


@pytest.mark.mechanism("holmes.oversized")
async def test_without_a_store_a_large_result_is_refused() -> None:
    model = ScriptedModel([calls(("look_up", {}))])
    await run(model, FakeTool(answer=lambda arguments: "x y " * 100_000), use={"store": None})
    [result] = results_of(model)
    assert "ask for less" in result
    assert len(result) < 500


@dataclass
class FullStore(World):
    async def keep_text(self, part: ToolResultPart) -> str:
        raise ToolFailure("The store is full.")


@pytest.mark.parametrize(("is_idempotent", "state"), [(True, "failed"), (False, "done")])
async def test_a_failing_store_affects_one_result_and_a_completed_call_is_not_to_be_repeated(
    is_idempotent: bool, state: str
) -> None:
    model = ScriptedModel([calls(("look_up", {}))], default="All done.")
    tool = FakeTool(answer=lambda arguments: "x y " * 100_000, traits=ToolTraits(is_idempotent=is_idempotent))
    world = FullStore()
    steps = await run(model, tool, world=world)
    assert text_of(steps) == "All done."
    assert world.log[-1] == (state, "look_up")
    [result] = results_of(model)
    assert ("ask for less" in result, "do not repeat it" in result) == (is_idempotent, not is_idempotent)


CHART = ToolOutput("A chart.", (ToolImage(b"...", "image/png"),))


@pytest.mark.mechanism("holmes.oversized")
async def test_an_image_is_stored_and_replaced_by_a_reference() -> None:
    model = ScriptedModel([calls(("look_up", {}))])
    await run(model, FakeTool(answer=lambda arguments: CHART))
    assert results_of(model) == ["A chart.\n[Image (image/png): image of look_up]"]


async def test_a_tool_that_shows_images_shows_them_to_the_model() -> None:
    tool = FakeTool(answer=lambda arguments: CHART, traits=ToolTraits(shows_images=True))
    model = ScriptedModel([calls(("look_up", {}), ("look_up", {"again": True}))])
    await run(model, tool)
    wire = write_messages(model.requests[-1].messages)
    assert [message["role"] for message in wire[-4:]] == ["assistant", "tool", "tool", "user"]
    assert [part["image_url"]["url"] for part in wire[-1]["content"]] == ["data:image/png;base64,Li4u"] * 2
