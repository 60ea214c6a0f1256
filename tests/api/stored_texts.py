"""Find copies of texts in rows that should only refer to them, and check whether requests can be rebuilt."""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations.models import Message
from chatapp.realtime.models import Event
from chatapp.runs.models import RunStep
from tests.api.program import Program

PIECE = 12
"""As many consecutive characters as no two texts of these tests share by chance."""


def copies_of(texts: Iterable[str]) -> int:
    """Return how many characters of these texts are copied into rows that should only refer to them."""
    rows = [
        *(
            json.dumps(payload, ensure_ascii=False)
            for payload in Event.objects.values_list("payload", flat=True)
        ),
        *SentRequest.objects.values_list("manifest", flat=True),
        *RequestText.objects.values_list("content", flat=True),
        *map(str, RunStep.objects.values()),
    ]
    stored = "\n".join(rows)
    return sum(
        PIECE
        for text in texts
        for at in range(0, len(text) - PIECE, PIECE)
        if json.dumps(text[at : at + PIECE], ensure_ascii=False)[1:-1] in stored
    )


def said() -> list[str]:
    texts = []
    for row in Message.objects.all():
        texts += [part.get("text") or part.get("arguments", "") for part in row.parts]
    return texts


async def verified(program: Program, run_id: str) -> list[bool]:
    listed = (await program.get(f"runs/{run_id}/requests")).json()["items"]
    shown = [(await program.get(f"runs/{run_id}/requests/{row['n']}")).json() for row in listed]
    return [request["verified"] for request in shown]
