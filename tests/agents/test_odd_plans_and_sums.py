"""agents/plan/choosing.py, agents/plan/parsing.py, agents/tools/calculator.py."""

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from agents.plan.parsing import read_analysis, read_plan
from agents.plan.steps import PlanStep
from agents.tools.calculator import calculate
from tests.servers.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("text", ["word ", "QUJDREVG", "字", "\n"])
def test_the_mode_of_a_long_message_is_chosen_at_no_cost(text: str):
    """ "The form of the question decides, at no cost": a paste of 100,000 characters without a full stop (a list of
    words, base64, a minified file, blank lines) keeps the expression busy for minutes, and `re` holds the interpreter's
    lock: nothing else of the process answers."""
    program = (
        f"from agents.plan.choosing import choose_mode\nchoose_mode('auto', ({text!r} * 100_000)[:100_000])"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)


@pytest.mark.parametrize(
    ("said", "meant"), [("NaN", 0.0), ('"nan"', 0.0), ('"1%"', 0.01), ('"0.5%"', 0.005), ('"50%"', 0.5)]
)
def test_confidence_is_a_number_from_0_to_1(said: str, meant: float):
    """ "a percentage is divided, and what is no number is 0"."""
    found = read_analysis(f'{{"goal_met": false, "confidence": {said}}}')
    assert found is not None
    assert found.confidence == pytest.approx(meant)


def test_an_analyst_that_is_not_sure_at_all_gets_another_round():
    found = read_analysis('{"goal_met": false, "confidence": NaN, "missing": "the price"}')
    assert found is not None
    assert found.wants_replanning


@pytest.mark.parametrize(
    "expression", ["12345678901234567.89 - 12345678901234567", "0.1234567890123456789 * 10**19"]
)
def test_arithmetic_is_exact(expression: str):
    """ "exact for arithmetic": a decimal is read as a float first, which keeps 17 digits."""
    first, sign, rest = expression.partition(" - ") if " - " in expression else expression.partition(" * ")
    exact = Fraction(Decimal(first))
    exact = exact - int(rest) if sign == " - " else exact * 10**19
    assert calculate(expression) == exact


def test_a_step_that_is_renamed_gets_no_name_of_another_step():
    """The scheduler keeps steps by their ids: of two with the same one is never run."""
    earlier = (PlanStep("s1", "A", "A", state="done"),)
    plan = '{"steps": [{"id": "s1", "task": "look up"}, {"id": "s1-r2", "task": "add up"}]}'
    steps = read_plan(plan, number=2, earlier=earlier)
    assert len({step.id for step in steps}) == 2
