"""Parsing plans and judgements from model answers, and the reasons given for invalid ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.plan.parsing import Analysis, PlanError, read_analysis, read_plan
from agents.plan.steps import MAX_STEPS, PlanStep

STEPS = [
    {"id": "a", "title": "Find A", "task": "Find out about A.", "dependencies": []},
    {"id": "b", "task": "Compare with A.", "dependencies": ["a"]},
]
PLAN = json.dumps({"steps": STEPS})


def plan_of(*steps: dict[str, Any]) -> str:
    return json.dumps({"steps": steps})


def step(id: str, *dependencies: str) -> dict[str, Any]:
    return {"id": id, "task": f"Do {id}.", "dependencies": list(dependencies)}


def test_the_steps_of_a_plan_keep_their_order() -> None:
    assert read_plan(PLAN) == (
        PlanStep("a", "Find A", "Find out about A."),
        PlanStep("b", "Compare with A.", "Compare with A.", ("a",)),
    )


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{PLAN}\n```",
        f"Sure! {{braces}} and [lists] aside, here it is:\n\n{PLAN}\n\nShall I begin?",
        f'<think>{{"steps": []}} would be too few.</think>{PLAN}',
        json.dumps(STEPS),
        json.dumps({"plan": {"steps": STEPS}}),
        json.dumps({"thought": {"note": 1}, "tasks": STEPS}),
    ],
    ids=["fenced", "prose around it", "after thoughts", "a bare list", "nested", "under another name"],
)
def test_a_plan_is_found_whatever_surrounds_it(answer: str) -> None:
    assert read_plan(answer) == read_plan(PLAN)


def test_numeric_ids_and_alternative_field_names_are_accepted() -> None:
    answer = plan_of(
        {"id": 1, "description": "One."}, {"step_id": 2, "task": "Two.", "depends_on": 1}, {"task": "Three."}
    )
    assert [(one.id, one.dependencies) for one in read_plan(answer)] == [("1", ()), ("2", ("1",)), ("s3", ())]


def test_an_empty_list_of_steps_is_a_valid_plan() -> None:
    assert read_plan('{"steps": []}') == ()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("I would rather not.", 'no JSON object with a list "steps"'),
        ('{"steps": "none"}', 'no JSON object with a list "steps"'),
        (plan_of(step("a"))[:-3], 'no JSON object with a list "steps"'),
        (json.dumps({"steps": ["do it"]}), "step 1 is not an object"),
        (plan_of({"id": "a"}), 'step 1 has no "task"'),
        (plan_of({**step("a"), "dependencies": {"b": 1}}), "is not a list of ids"),
        (plan_of(step("a"), step("a")), 'two steps have the id "a"'),
        (plan_of(step("a", "z")), '"a" depends on "z", which does not exist'),
        (plan_of(step("a", "a")), "dependency: a → a"),
        (plan_of(step("a", "b"), step("b", "a")), "circular dependency"),
        (plan_of(*(step(str(number)) for number in range(MAX_STEPS + 1))), f"at most {MAX_STEPS}"),
    ],
)
def test_an_invalid_plan_is_refused_with_the_reason(answer: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem.replace("(", r"\(")):
        read_plan(answer)


def test_a_later_round_can_depend_on_completed_steps_and_gets_unique_ids() -> None:
    earlier = (PlanStep("a", "A", "A", state="done"), PlanStep("x", "X", "X", state="failed"))
    first, second = read_plan(plan_of(step("b", "a"), step("x", "b")), number=2, earlier=earlier)
    assert (first.id, first.dependencies, first.round) == ("b", ("a",), 2)
    assert (second.id, second.dependencies) == ("x-r2", ("b",))
    with pytest.raises(PlanError, match="does not exist"):
        read_plan(plan_of(step("b", "x")), number=2, earlier=earlier)


def test_a_step_cannot_use_the_id_of_the_planner() -> None:
    first, second = read_plan(plan_of(step("planner"), step("b", "planner")))
    assert (first.id, second.dependencies) == ("planner-r1", ("planner-r1",))


def test_characters_that_no_database_stores_are_replaced_in_a_plan() -> None:
    answer = r'{"steps": [{"id": "a\u0000", "title": "\ud83d", "task": "Do \ud83d\ude42 a\u0000."}]}'
    [only] = read_plan(answer)
    assert (only.id, only.title, only.task) == ("a\ufffd", "\ufffd", "Do 🙂 a\ufffd.")


@given(st.text() | st.text('{}[]",:abe01 \n'))
def test_any_answer_gives_a_plan_or_a_plan_error(answer: str) -> None:
    try:
        steps = read_plan(answer)
    except PlanError:
        return
    assert len(steps) <= MAX_STEPS


@pytest.mark.parametrize(
    ("answer", "analysis"),
    [
        ('{"goal_met": true, "confidence": 0.9, "missing": ""}', Analysis(True, 0.9)),
        ('So: ```{"goal_met": "no", "confidence": "30%", "missing": "B"}```', Analysis(False, 0.3, "B")),
        ('{"achieved": false, "confidence": "low"}', Analysis(False, 0.0)),
        ('{"goal_met": "perhaps"}', None),
        ("All fine.", None),
    ],
)
def test_a_judgement_is_parsed_and_an_invalid_one_is_none(answer: str, analysis: Analysis | None) -> None:
    assert read_analysis(answer) == analysis


@pytest.mark.parametrize(
    ("goal_met", "confidence", "wants"), [(False, 0.2, True), (False, 0.9, False), (True, 0.1, False)]
)
def test_a_new_plan_is_wanted_for_an_unmet_goal_and_low_confidence(
    goal_met: bool, confidence: float, wants: bool
) -> None:
    assert Analysis(goal_met, confidence).wants_replanning is wants
