"""Long conversations made by rule, so that a test knows what they hold."""

from __future__ import annotations

from typing import Any

SUBJECTS = (
    "the harbour",
    "the garden",
    "the choir",
    "the workshop",
    "the archive",
    "the kitchen",
    "the bicycle",
)


def long_history(count: int, padding: int = 12) -> list[dict[str, Any]]:
    """`count` messages, user and assistant in turn, each with a number that stands nowhere else."""
    history = []
    for number in range(count):
        subject = SUBJECTS[number % len(SUBJECTS)]
        filler = " ".join(f"word{(number * 7 + step) % 97}" for step in range(padding))
        role = "user" if number % 2 == 0 else "assistant"
        history.append(
            {"role": role, "content": f"Note {number} about {subject}: code QX-{number:05d}. {filler}"}
        )
    return history
