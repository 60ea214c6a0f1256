"""Auto mode: which questions get a plan."""

from __future__ import annotations

import pytest

from agents.plan.choosing import choose_mode, split_parts


@pytest.mark.parametrize(
    "question",
    [
        "Please:\n1. Find the price of A\n2. Find the price of B\n3. Compare them",
        "- population of Lisbon\n- population of Porto\n- population of Faro",
        "How large is A? How large is B? Which one is older?",
        "里斯本有多少人口？波尔图有多少人口？哪个城市更古老？",
    ],
)
def test_a_question_of_three_parts_gets_a_plan(question: str) -> None:
    assert choose_mode("auto", question) == "plan"


@pytest.mark.parametrize(
    "question",
    [
        "Hello",
        "",
        "How large is Lisbon, and how old?",
        "What? Why?",
        "Mend this:\n```\n- one thing\n- two things\n- three things\n```",
        "> 1. he wrote this\n> 2. and this\n> 3. and this\nWhat does he mean?",
    ],
)
def test_any_other_question_is_answered_in_one_loop(question: str) -> None:
    assert choose_mode("auto", question) == "react"


def test_an_explicitly_chosen_mode_is_kept() -> None:
    assert choose_mode("plan", "Hello") == "plan"
    assert choose_mode("react", "- one part\n- two parts\n- three parts") == "react"


def test_parts_are_whole_and_in_order() -> None:
    assert split_parts("Do:\n1) first thing\n2) second   thing") == ("first thing", "second thing")
    assert split_parts("One question only?") == ("One question only?",)
