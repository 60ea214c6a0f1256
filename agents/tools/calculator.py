"""A tool for exact arithmetic, in bounded time and space: numbers, operators and a few functions."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from pydantic import Field
from simpleeval import DEFAULT_OPERATORS, InvalidExpression, SimpleEval

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.protocol import ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import ToolSpec

MAX_CHARS = 500
MAX_BITS = 10_000
"""Limit for any intermediate number: about 3,000 digits. Larger ones are refused before they are computed."""
SHOWN_DIGITS = 15
MAX_EXPONENT = 400
"""Limit for the power of ten in a decimal."""

Compute = Callable[..., float | Fraction]

_SIGNS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd)
_MATH = ("floor", "ceil", "sqrt", "exp", "log", "log10", "log2", "sin", "cos", "tan", "asin", "acos", "atan")
_FUNCTIONS: Mapping[str, Compute] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda value, digits=Fraction(0): round(value, _whole(digits)),
    **{name: getattr(math, name) for name in _MATH},
    "factorial": lambda value: _factorial(_whole(value)),
    "gcd": lambda *values: math.gcd(*map(_whole, values)),
}
_CONSTANTS: Mapping[str, Fraction] = {"pi": Fraction(math.pi), "e": Fraction(math.e)}
_NODES = (ast.BinOp, ast.Call, ast.Name, ast.UnaryOp)
"""The nodes of simpleeval in use: no attributes, subscripts, comparisons or texts."""
_NOT_UNDERSTOOD = (
    "This is not an expression the calculator understands: use numbers, + - * / // % **, parentheses and "
    f"{', '.join(_FUNCTIONS)}."
)


def calculate(expression: str) -> Fraction:
    """Return the value: exact for arithmetic, with float precision for functions and roots. Raise ToolFailure."""
    if len(expression) > MAX_CHARS:
        raise ToolFailure(f"The expression has over {MAX_CHARS} characters; split it.")
    try:
        # Parse here, because simpleeval would evaluate the first of several statements.
        expression = expression.strip()
        return _bounded(_evaluator(expression).eval(expression, ast.parse(expression, mode="eval").body))
    except ZeroDivisionError:
        raise ToolFailure("Something is divided by zero.") from None
    except (OverflowError, MemoryError, InvalidOperation):
        raise _too_large() from None
    except (InvalidExpression, SyntaxError, RecursionError, TypeError, AttributeError):
        raise ToolFailure(_NOT_UNDERSTOOD) from None
    except ValueError:
        raise ToolFailure(
            "A function is not defined for its argument, or takes whole numbers only."
        ) from None


def _evaluator(expression: str) -> Any:
    operators = {sign: DEFAULT_OPERATORS[sign] for sign in _SIGNS} | {ast.Pow: _power}
    evaluator = SimpleEval(
        operators={sign: _exactly(compute) for sign, compute in operators.items()},
        functions={name: _exactly(compute) for name, compute in _FUNCTIONS.items()},
        names=dict(_CONSTANTS),
    )
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in _NODES} | {
        ast.Constant: partial(_number, expression)
    }
    return evaluator


def _exactly(compute: Compute) -> Callable[..., Fraction]:
    return lambda *values: _bounded(Fraction(compute(*values)))


def _number(expression: str, node: ast.Constant) -> Fraction:
    # bool is a subclass of int.
    if type(node.value) not in (int, float):
        raise InvalidExpression("numbers only")
    if isinstance(node.value, int):
        return _bounded(Fraction(node.value))
    # Read the number as written, because a float keeps only 17 digits.
    written = Decimal(ast.get_source_segment(expression, node) or str(node.value))
    if written and abs(written.adjusted()) > MAX_EXPONENT:
        raise _too_large()
    return _bounded(Fraction(written))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
        # Powers of -1, 0 and 1 do not grow with the exponent.
        if abs(base) == 1:
            return base if exponent % 2 else base * base
        if base == 0 and exponent > 0:
            return base
        if _bits(base) * abs(exponent) > MAX_BITS:
            raise _too_large()
        return Fraction(base**exponent.numerator)
    root = float(base) ** float(exponent)
    if isinstance(root, complex):
        raise ToolFailure("A root of a negative number is not a real number.")
    return Fraction(root)


def _factorial(number: int) -> Fraction:
    if number * max(number.bit_length(), 1) > MAX_BITS:
        raise _too_large()
    return Fraction(math.factorial(number))


def _whole(value: Fraction) -> int:
    if value.denominator != 1 or abs(value) > MAX_BITS:
        raise ValueError("whole numbers only")
    return value.numerator


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > MAX_BITS:
        raise _too_large()
    return value


def _too_large() -> ToolFailure:
    return ToolFailure("The numbers get too large for the calculator.")


def shown(value: Fraction) -> str:
    """Return the number as text: whole numbers and short decimals exactly, all others to 15 digits."""
    if value.denominator == 1:
        return str(value.numerator)
    # Floats have no numbers beyond these limits, and fewer digits close to zero.
    if sys.float_info.min <= abs(value) <= sys.float_info.max:
        rounded = f"{float(value):.{SHOWN_DIGITS}g}"
    else:
        with localcontext(prec=SHOWN_DIGITS):
            rounded = f"{(Decimal(value.numerator) / value.denominator).normalize():g}"
    return rounded if Fraction(rounded) == value else f"{rounded} (rounded)"


class CalculatorArguments(Arguments):
    expression: str = Field(
        min_length=1, max_length=MAX_CHARS, description="Such as (1234.5 * 12) / 7 or sqrt(2) * 10**3."
    )


@dataclass(frozen=True, slots=True)
class Calculator:
    spec: ClassVar = ToolSpec(
        "calculator",
        "Computes an arithmetic expression exactly. Use it instead of calculating in your head.",
        schema_of(CalculatorArguments),
    )
    traits: ClassVar = ToolTraits(timeout_s=5.0)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        expression = read_arguments(CalculatorArguments, arguments).expression
        return ToolOutput(f"{expression} = {shown(calculate(expression))}")
