"""Edge cases of choosing a mode, parsing plans and calculating."""

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
def test_the_mode_of_a_long_message_is_chosen_in_bounded_time(text: str):
    """Backtracking over 100,000 characters without a full stop (a list of words, base64, a minified file, blank lines)
    would take minutes, in which `re` holds the GIL and blocks the whole process."""
    program = (
        f"from agents.plan.choosing import choose_mode\nchoose_mode('auto', ({text!r} * 100_000)[:100_000])"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=PATIENCE_S, check=True)


@pytest.mark.parametrize(
    ("said", "meant"), [("NaN", 0.0), ('"nan"', 0.0), ('"1%"', 0.01), ('"0.5%"', 0.005), ('"50%"', 0.5)]
)
def test_confidence_is_a_number_from_0_to_1(said: str, meant: float):
    """A percentage is divided by 100, and an invalid number is 0."""
    found = read_analysis(f'{{"goal_met": false, "confidence": {said}}}')
    assert found is not None
    assert found.confidence == pytest.approx(meant)


def test_a_confidence_of_nan_leads_to_another_round():
    found = read_analysis('{"goal_met": false, "confidence": NaN, "missing": "the price"}')
    assert found is not None
    assert found.wants_replanning


@pytest.mark.parametrize(
    "expression", ["12345678901234567.89 - 12345678901234567", "0.1234567890123456789 * 10**19"]
)
def test_arithmetic_is_exact(expression: str):
    """A float would keep only 17 digits."""
    first, sign, rest = expression.partition(" - ") if " - " in expression else expression.partition(" * ")
    exact = Fraction(Decimal(first))
    exact = exact - int(rest) if sign == " - " else exact * 10**19
    assert calculate(expression) == exact


def test_a_renamed_step_does_not_get_the_id_of_another_step():
    """The scheduler stores steps by id, so one of two steps with the same id would never run."""
    earlier = (PlanStep("s1", "A", "A", state="done"),)
    plan = '{"steps": [{"id": "s1", "task": "look up"}, {"id": "s1-r2", "task": "add up"}]}'
    steps = read_plan(plan, number=2, earlier=earlier)
    assert len({step.id for step in steps}) == 2
