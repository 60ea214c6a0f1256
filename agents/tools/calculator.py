"""Exact arithmetic on what a model writes: numbers, operators and a few functions, in bounded time and space."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from agents.tools.arguments import Arguments, read_arguments, schema_of
from agents.tools.protocol import ToolCaller, ToolFailure, ToolOutput, ToolTraits
from agents.types import ToolSpec

MAX_CHARS = 500
MAX_BITS = 10_000
"""Of any number on the way: about 3,000 digits. What would be larger is refused before it is computed."""
SHOWN_DIGITS = 15

_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., float | Fraction]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda value, digits=Fraction(0): Fraction(round(value, _whole(digits))),
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "factorial": lambda value: _factorial(_whole(value)),
    "gcd": lambda *values: math.gcd(*map(_whole, values)),
}
_CONSTANTS: Mapping[str, Fraction] = {"pi": Fraction(math.pi), "e": Fraction(math.e)}
_NOT_UNDERSTOOD = (
    "This is not an expression the calculator understands: use numbers, + - * / // % **, parentheses and "
    f"{', '.join(_FUNCTIONS)}."
)


def calculate(expression: str) -> Fraction:
    """Exact where arithmetic is; functions and roots as precise as floats. Raises ToolFailure."""
    if len(expression) > MAX_CHARS:
        raise ToolFailure(f"The expression has over {MAX_CHARS} characters; split it.")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ToolFailure("Something is divided by zero.") from None
    except (OverflowError, MemoryError):
        raise _too_large() from None
    except (SyntaxError, RecursionError, TypeError):
        raise ToolFailure(_NOT_UNDERSTOOD) from None
    except ValueError:
        raise ToolFailure(
            "A function is not defined for its argument, or takes whole numbers only."
        ) from None


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(Fraction(str(number)))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _value(inner)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _bounded(Fraction(_OPERATORS[type(sign)](_value(left), _value(right))))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _bounded(Fraction(_FUNCTIONS[name](*map(_value, arguments))))
    raise ToolFailure(_NOT_UNDERSTOOD)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator == 1:
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
    """Whole numbers and short decimals exactly, all else to 15 digits."""
    if value.denominator == 1:
        return str(value.numerator)
    try:
        rounded = f"{float(value):.{SHOWN_DIGITS}g}"
    except OverflowError:
        raise _too_large() from None
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
