"""The context engine in figures: cost of a load, tokens for summaries, stable prefixes, estimates, facts kept.

python -m benchmarks.context [--largest 1000000] [--skip-load]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from agents.chat_models.usage import count_tools
from agents.chat_models.wire import write_messages
from benchmarks import context_load, recall_in_place
from benchmarks.recall_data import read_conversations
from memory.budget import TokenBudget
from memory.summaries.summary import summary_message
from memory.tokens import Calibration, estimate_text, text_message, total_tokens
from memory.types import Checkpoint, Message
from memory.window.compaction import PlanInputs, plan_span
from memory.window.cut import summary_limit
from memory.window.policy import DEFAULT_POLICY, ContextPolicy
from memory.window.view import View, ViewInputs, fit_view
from tests.acceptance.conversations import long_history

BUDGET = TokenBudget(128_000, 64_000)
SYSTEM = text_message("system", "You are a helpful assistant. " * 12)
SUMMARY = "What was decided, with names, numbers and dates. " * 70
SAMPLES = Path("tests/memory/fixtures/token_counts.json")


@dataclass
class Simulation:
    """A conversation that grows turn by turn and is compacted as in the service, with an immediate summary."""

    policy: ContextPolicy = DEFAULT_POLICY
    budget: TokenBudget = BUDGET
    summary: str = SUMMARY
    history: list[Message] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    since_compaction: int | None = None
    sent_to_summariser: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def behind_checkpoint(self) -> list[Message]:
        return self.history[self.checkpoint.last_position + 1 if self.checkpoint else 0 :]

    def ask(self, question: Message) -> View:
        return fit_view(
            ViewInputs(
                system=SYSTEM,
                checkpoint=self.checkpoint,
                messages=self.behind_checkpoint,
                question=question,
                policy=self.policy,
                budget=self.budget,
            )
        )

    def take(self, *messages: Message) -> bool:
        """Store a turn, and return whether a compaction followed it."""
        for message in messages:
            self.history.append(replace(message, id=f"m{len(self.history)}", position=len(self.history)))
        self.since_compaction = None if self.since_compaction is None else self.since_compaction + 1
        plan = plan_span(
            PlanInputs(
                self.behind_checkpoint,
                self.checkpoint,
                self.policy,
                self.budget,
                system_tokens=SYSTEM.tokens,
                turns_since_compaction=self.since_compaction,
            )
        )
        if plan is None:
            return False
        self._compact(plan.first_position, plan.last_position)
        return True

    def _compact(self, first: int, last: int) -> None:
        previous = self.checkpoint.summary if self.checkpoint else ""
        span = self.history[first : last + 1]
        requests = self.policy.behaviour.requests(
            span, previous=previous, form=self.policy.summary_form, window=self.budget
        )
        for request in requests:
            self.sent_to_summariser += total_tokens(request.messages(previous))
            previous = self.summary
        self.spans.append((first, last))
        tokens = summary_message(self.summary).tokens
        self.checkpoint = Checkpoint(f"c{last}", self.summary, last, len(span), tokens)
        self.since_compaction = 0


def turns(count: int) -> Iterator[tuple[Message, Message]]:
    notes = long_history(count, padding=60)
    for asked, answered in zip(notes[::2], notes[1::2], strict=True):
        yield text_message("user", asked["content"]), text_message("assistant", answered["content"])


SMALL_BUDGETS = (TokenBudget(8_000, 4_000), TokenBudget(16_000, 4_000), TokenBudget(32_000, 4_000))
"""The first is clamped to the minimum of 4,000 tokens."""


def simulate_small_window(budget: TokenBudget, messages: int) -> Simulation:
    """Simulate a conversation whose summaries have the length requested for this window. The summariser has the same
    window."""
    limit = summary_limit(DEFAULT_POLICY, budget.input_tokens)
    policy = DEFAULT_POLICY.model_copy(update={"summary_max_tokens": limit})
    words = SUMMARY.split() * 2
    summary = " ".join(words[: limit * len(words) // (2 * estimate_text(SUMMARY))])
    simulation = Simulation(policy=policy, budget=budget, summary=summary)
    for question, answer in turns(messages):
        simulation.take(question, answer)
    return simulation


def measure_small_windows(messages: int) -> None:
    """Print what small windows cost: each summary request contains the previous summary again, for a short span."""
    for budget in SMALL_BUDGETS:
        simulation = simulate_small_window(budget, messages)
        ratio = simulation.sent_to_summariser / total_tokens(simulation.history)
        print(
            f"  the same with a window of {budget.context_size:6,d}, {messages:,} messages {ratio:8.2f} : 1"
        )


def measure_growth(messages: int) -> None:
    """Print the tokens for summaries and the stable prefixes of one growing conversation."""
    simulation, shares, after_compaction = Simulation(), [], False
    before = b""
    for question, answer in turns(messages):
        sent = json.dumps(write_messages(simulation.ask(question).messages())).encode()[:-1]
        if before and not after_compaction:
            shares.append(common_prefix(before, sent) / min(len(before), len(sent)))
        before, after_compaction = sent, simulation.take(question, answer)
    own = total_tokens(simulation.history)
    summarised = total_tokens(simulation.history[: simulation.spans[-1][1] + 1])
    print(f"A conversation of {messages:,} messages, {own:,} tokens, {len(simulation.spans)} compactions")
    print(
        f"  sent to summarisers : summarised messages  {simulation.sent_to_summariser / summarised:8.2f} : 1"
    )
    print(f"  sent to summarisers : whole conversation   {simulation.sent_to_summariser / own:8.2f} : 1")
    print(f"  spans summarised twice                     {count_overlaps(simulation.spans):8d}")
    print(f"  shared prefix, least of {len(shares):,} turns        {min(shares) * 100:8.1f} %")
    print(f"  shared prefix, median                      {statistics.median(shares) * 100:8.1f} %")


def common_prefix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def count_overlaps(spans: Sequence[tuple[int, int]]) -> int:
    return sum(second[0] != first[1] + 1 for first, second in pairwise(spans))


def measure_estimates() -> None:
    """Print the error against two real tokenizers, before and after five responses with token counts."""
    samples = json.loads(SAMPLES.read_text())
    print("Error of the estimate          uncalibrated   after five responses")
    for tokenizer in ("o200k_base", "cl100k_base"):
        worst = [0.0, 0.0]
        for kind in dict.fromkeys(sample["kind"] for sample in samples):
            chosen = [sample for sample in samples if sample["kind"] == kind]
            estimates = [estimate_text(sample["text"]) for sample in chosen]
            counted = [sample[tokenizer] for sample in chosen]
            learned = Calibration()
            for number in range(5):
                learned = learned.update(
                    estimates[number % len(chosen)] * 10, counted[number % len(chosen)] * 10
                )
            total = sum(counted)
            errors = (abs(sum(estimates) / total - 1), abs(learned.apply(sum(estimates)) / total - 1))
            worst = [max(pair) for pair in zip(worst, errors, strict=True)]
            print(f"  {tokenizer:12} {kind:12} {errors[0] * 100:12.1f} % {errors[1] * 100:17.1f} %")
        print(f"  {tokenizer:12} {'worst':12} {worst[0] * 100:12.1f} % {worst[1] * 100:17.1f} %")
    text = "\n".join(sample["text"] for sample in samples) * 40
    seconds = best_of(lambda: estimate_text(text))
    print(f"  speed                     {len(text) / seconds / 1e6:12.0f} Mchar/s")


def measure_large_view() -> None:
    from tests.memory.measure import long_history as history_with_tools

    history = history_with_tools()
    print(f"A view of {len(history):,} messages with tool calls")
    for window in (8_000, 128_000, 1_000_000):
        budget = TokenBudget(window, min(64_000, window // 2))
        simulation = Simulation(budget=budget, history=history)
        question = text_message("user", "And now?", kind="question")
        seconds = best_of(partial(simulation.ask, question))
        print(f"  split and fit, window {window:9,d} {seconds * 1000:10.1f} ms")


def best_of(work: Callable[[], object], times: int = 5) -> float:
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return min(spent)


FACT_BUDGET = 4_000
"""Tokens for everything except system prompt and tool schemas, the same for all three methods."""


def measure_facts() -> None:
    """Print how many of 200 old facts the context contains when the user asks for them, at equal budgets."""
    from chatapp.accounts.models import User
    from chatapp.compaction.compactor import compact, queue_next_compaction
    from chatapp.compaction.models import Compaction
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.operations import clock
    from chatapp.providers.actions import ensure_first_model
    from chatapp.recall.actions.indexing import index_conversation

    ensure_first_model()
    user = User.objects.create_user("facts@example.com")
    notes = [ImportedMessage(note["role"], note["content"]) for note in long_history(2_000, padding=30)]
    conversation = import_conversation(user=user, messages=notes, now=clock.now())
    while queue_next_compaction(conversation.pk):
        for row in Compaction.objects.filter(conversation=conversation, status="pending"):
            compact(row.pk)
    index_conversation(conversation.pk)
    asked = range(0, 1_000, 5)
    print(
        f"Facts in the context when asked for, 200 of 1,000 old ones, {FACT_BUDGET:,} tokens beside the frame"
    )
    for name, request_of in (
        ("plain truncation", newest_only),
        ("summary only", summary_and_newest),
        ("checkpoint and recall", checkpoint_and_recall),
    ):
        held, tokens = 0, 0
        for number in asked:
            messages, used = request_of(_loaded(conversation, f"What is the code of note {number}?"))
            held += any(f"QX-{number:05d}" in message.text for message in messages)
            tokens += used
        share, size = held / len(asked), tokens / len(asked)
        print(
            f"  {name:24} {share * 100:6.1f} % held   {size:7.0f} tokens in all   "
            f"{held / tokens * 1000:.2f} facts per 1,000"
        )


def _loaded(conversation: Any, question: str) -> Any:
    from chatapp.context.assembly import load_context
    from chatapp.context.policies import rules_for
    from chatapp.operations import clock
    from chatapp.providers.selectors import default_model

    config = default_model()
    rules = rules_for(config, conversation)
    budget = replace(rules.budget, input_limit=FACT_BUDGET)
    return load_context(
        conversation=conversation,
        branch=conversation.branch,
        before_position=conversation.next_position,
        question=text_message("user", question, kind="question"),
        config=config,
        now=clock.now(),
        rules=replace(rules, resolved=replace(rules.resolved, budget=budget)),
    )


def checkpoint_and_recall(loaded: Any) -> tuple[Sequence[Message], int]:
    from chatapp.context.recalled import recall_turns
    from chatapp.operations import clock

    context = loaded.assemble()
    whole = recall_turns(loaded, context, clock.now(), asked_by="a benchmark").place_in(context)
    return whole.request.messages, whole.total_tokens


def summary_and_newest(loaded: Any) -> tuple[Sequence[Message], int]:
    """Return the checkpoint's summary and the newest messages that fill the rest of the budget, with their tokens."""
    view = loaded.assemble().view
    return _filled(loaded, (view.summary,))


def newest_only(loaded: Any) -> tuple[Sequence[Message], int]:
    return _filled(loaded, ())


def _filled(loaded: Any, frame: tuple[Message, ...]) -> tuple[Sequence[Message], int]:
    """Return the system prompt, `frame`, the newest history that fits and the question, with the tokens of the whole
    request."""
    from chatapp.conversations.message_values import message_value

    inputs = loaded.inputs
    fixed = (inputs.system, *frame)
    room = FACT_BUDGET - total_tokens(frame) - inputs.question.tokens
    newest: list[Message] = []
    for row in loaded.conversation.messages.order_by("-position")[:500]:
        message = message_value(row)
        room -= message.tokens
        if room < 0:
            break
        newest.insert(0, message)
    messages = (*fixed, *newest, inputs.question)
    return messages, inputs.calibration.apply(total_tokens(messages) + count_tools(inputs.tools))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--skip-load", action="store_true", help="a million messages take minutes to write")
    arguments = parser.parse_args()
    measure_growth(10_000)
    measure_small_windows(4_000)
    measure_estimates()
    measure_large_view()
    folder = context_load.prepare()
    try:
        measure_facts()
        if recall_in_place.DATA.is_file():
            recall_in_place.report(read_conversations(recall_in_place.DATA))
        else:
            print(f"Recall was not measured: {recall_in_place.DATA} is not there.")
        if not arguments.skip_load:
            context_load.measure([100, 10_000, arguments.largest], 40)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
