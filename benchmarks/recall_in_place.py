"""A conversation with a recall for each of twenty questions: how much of the last request and of the evidence it keeps.

python -m benchmarks.recall_in_place [DATA] [--first N]

`--first 2` asks twenty other questions than `--first 0`. A single one is 1.7 % of the evidence, and 5 % in the largest
window. If DATA has people, those of one language become one conversation, in windows too small for the whole of it.

The benchmark runs the service's own actions without a model. `each time anew` does the same, but keeps no recalled
turns in place and recalls up to 8,000 tokens for each question.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from agents.chat_models.wire import write_messages
from benchmarks.recall_data import Asked, History, chained, read_conversations, read_people, said_in
from benchmarks.stage import prepared_database
from memory.window import view

RECALLING_QUESTIONS = view.RECALLING_QUESTIONS
DATA = Path("../shared/data/recall_dev.json")
WINDOWS = ((14_000, 2_000), (32_000, 4_000), (128_000, 64_000))
QUESTIONS = 20
ANSWER = "I looked at what you told me before, and this is what I can say about it. " * 4
LEAST_SHARE = 0.9
LARGE = 100_000


@dataclass
class Measured:
    shares: list[float] = field(default_factory=list)
    breaks: int = 0
    """Requests that share less than LEAST_SHARE with the previous one, without a compaction or cut in between."""
    compactions: int = 0
    cuts: int = 0
    """Requests whose view was cut without a compaction. Like those after a compaction, they share little."""
    evidence: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"shared prefix: median {statistics.median(self.shares) * 100:5.1f} %, mean "
            f"{statistics.mean(self.shares) * 100:5.1f} %, {self.breaks} of {len(self.shares)} under 90 %; "
            f"{self.compactions} compactions and {self.cuts} cuts; "
            f"evidence {statistics.mean(self.evidence) * 100:5.1f} %; {statistics.mean(self.tokens):6.0f} tokens"
        )


def measure(
    histories: Sequence[History], window: tuple[int, int], *, is_anew: bool, first: int = 0
) -> Measured:
    """Return the results of all histories in one window, with twenty questions of each, starting at `first`."""
    measured = Measured()
    # If nothing is kept in place, each question gets the whole budget for recall.
    view.RECALLING_QUESTIONS = 1 if is_anew else RECALLING_QUESTIONS
    for history in histories:
        _Talk(history, window, is_anew=is_anew, first=first).go_on(measured)
    return measured


class _Talk:
    """A history as a compacted conversation, in which its questions are asked one after another."""

    def __init__(self, history: History, window: tuple[int, int], *, is_anew: bool, first: int) -> None:
        from chatapp.accounts.models import User
        from chatapp.conversations.actions.imports import import_conversation
        from chatapp.conversations.api.imports import read_messages
        from chatapp.operations import clock
        from chatapp.recall.actions.indexing import index_conversation

        name = f"{history.name}-{history.language}-{window[0]}-{is_anew}".replace(" ", "-")
        self.user: Any = User.objects.create_user(f"{name}@example.com")
        self.conversation: Any = import_conversation(
            user=self.user, messages=read_messages(said_in(history), clock.now()), now=clock.now()
        )
        policy = {"context_size": window[0], "max_output_tokens": window[1]}
        self.conversation.context_policy = policy | ({"recall_tokens": 8_000} if is_anew else {})
        self.conversation.save(update_fields=["context_policy"])
        self.is_anew = is_anew
        step = len(history.questions) // QUESTIONS
        turned = [*history.questions[first:], *history.questions[:first]]
        self.questions = turned[::step][:QUESTIONS]
        self.compact()
        index_conversation(self.conversation.pk)

    def compact(self) -> int:
        from chatapp.compaction.compactor import compact, queue_next_compaction
        from chatapp.compaction.models import Compaction

        done = 0
        while queue_next_compaction(self.conversation.pk):
            for row in Compaction.objects.filter(conversation=self.conversation, status="pending"):
                compact(row.pk)
                done += 1
        return done

    def go_on(self, measured: Measured) -> None:
        before, was_compacted, cut_at = b"", False, 0
        for asked in self.questions:
            sent, cut_now = self.ask(asked, measured)
            is_cut = before != b"" and not was_compacted and cut_now > cut_at
            measured.cuts += is_cut
            if before and not was_compacted and not is_cut:
                share = _common_prefix(before, sent) / min(len(before), len(sent))
                measured.shares.append(share)
                measured.breaks += share < LEAST_SHARE
            compactions = self.compact()
            measured.compactions += compactions
            before, was_compacted, cut_at = sent, compactions > 0, cut_now

    def ask(self, asked: Asked, measured: Measured) -> tuple[bytes, int]:
        """Ask and answer a question. Return (the request, the position from which recalled turns are in place)."""
        from chatapp.operations import clock
        from chatapp.recall.actions.indexing import index_conversation
        from chatapp.recall.actions.sources import recalled_rows
        from chatapp.runs.actions.endings import Outcome, finish_run
        from chatapp.runs.actions.requests import record_first_request
        from chatapp.runs.actions.runs import PartialAnswer, claim_run
        from chatapp.runs.actions.sending import NewMessage, send_message
        from chatapp.runs.models import RunSource
        from chatapp.runs.run_context import assemble_and_recall, describe_run

        if self.is_anew:
            RunSource.objects.filter(run__conversation=self.conversation).delete()
        receipt = send_message(
            user=self.user,
            conversation_id=str(self.conversation.pk),
            new=NewMessage(text=asked.question),
            model=None,
            now=clock.now(),
        )
        run_id = UUID(receipt.run_id)
        loaded = describe_run(run_id).context
        assert loaded is not None
        lease = claim_run(run_id=run_id, holder="benchmark", model_name="none", now=clock.now())
        assert lease is not None
        context, recalled = assemble_and_recall(loaded, run_id)
        rows = list(recalled_rows(lease.run_id, recalled.turns, starts_anew=recalled.starts_anew))
        record_first_request(lease=lease, request=None, facts=(), recalled=rows, now=clock.now())
        texts = [message.text for message in context.messages]
        measured.evidence.append(asked.share_in(texts))
        measured.tokens.append(context.total_tokens)
        outcome = Outcome(status="complete", answer=PartialAnswer(lease, ANSWER))
        finish_run(lease=lease, outcome=outcome, now=clock.now())
        index_conversation(self.conversation.pk)
        request = json.dumps(write_messages(context.messages)).encode()[:-1]
        return request, context.view.recalled_from


def _common_prefix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def report(histories: Sequence[History], first: int = 0) -> None:
    from chatapp.providers.actions import ensure_first_model

    ensure_first_model()
    print(
        f"{QUESTIONS} questions in a conversation, of {len(histories)} conversations, recalled for each of them"
    )
    for window in WINDOWS:
        # Each history alone fits into the largest window.
        asked = histories if window[0] < LARGE else [chained(histories)]
        if window[0] >= LARGE and len(histories) == 1:
            continue
        print(f"  window {window[0]:,}")
        for title, is_anew in (("each time anew", True), ("in its place", False)):
            print(f"    {title:16} {measure(asked, window, is_anew=is_anew, first=first)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--first", type=int, default=0, help="the first question of each conversation")
    arguments = parser.parse_args()
    with prepared_database("sqlite"):
        if "people" in json.loads(arguments.data.read_text()):
            people = read_people(arguments.data)
            for language in sorted({one.language for one in people}):
                print(language)
                report([chained([one for one in people if one.language == language])], arguments.first)
        else:
            report(read_conversations(arguments.data), arguments.first)


if __name__ == "__main__":
    main()
