"""Notices a loop that goes round in circles: the same call with the same arguments and the same result."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from agents.ports import CallResult
from agents.tool_calls import call_key

TOLD_AT = 3
"""So often the same, it is told; once more after that, and the loop ends."""

Verdict = Literal["fine", "tell", "end"]


class CycleWatch:
    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()
        self._was_told = False

    def note(self, results: Sequence[CallResult]) -> Verdict:
        """After each step. `end` only once the model was told and went on."""
        repeated = 0
        for print_ in {_fingerprint(result) for result in results}:
            self._seen[print_] += 1
            repeated = max(repeated, self._seen[print_])
        if repeated < TOLD_AT:
            return "fine"
        if self._was_told:
            return "end"
        self._was_told = True
        return "tell"


def _fingerprint(result: CallResult) -> bytes:
    said = (*call_key(result.call.name, result.call.arguments), result.whole)
    return hashlib.blake2b("\x00".join(said).encode("utf-8", "surrogatepass")).digest()
