"""After any messages, forks, pins, compactions and undos, a request contains only texts of its branch and ancestors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest
from django.db import transaction
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import undo_compaction
from chatapp.compaction.compactor import compact, queue_next_compaction
from chatapp.compaction.models import Compaction
from chatapp.context.assembly import load_context
from chatapp.conversations.branches import lineage_below
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model
from memory.tokens import estimate_parts, text_message
from memory.types import TextPart
from tests.context_engine.talking import words
from tests.memory_store.rows import NOW, new_conversation

pytestmark = pytest.mark.django_db(transaction=True)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from((30, 300, 600))),
        st.tuples(st.just("say"), st.sampled_from((30, 300, 600))),
        st.tuples(st.sampled_from(("fork", "fork", "switch", "pin", "undo")), st.integers(0, 99)),
        st.tuples(st.just("compact"), st.just(0)),
    ),
    min_size=12,
    max_size=24,
)


@dataclass
class Tree:
    """A conversation with branches, and the messages that each branch may show."""

    conversation: Conversation
    heads: dict[str, list[Message]] = field(default_factory=dict)

    @property
    def here(self) -> list[Message]:
        return self.heads[str(self.conversation.branch_id)]

    def say(self, size: int) -> None:
        """Add a question and its answer, each with a unique mark."""
        rows = []
        for role in ("user", "assistant"):
            position = self.conversation.next_position
            text = f"MARK-{position:04d} is noted. {words(size)}"
            row = Message(
                conversation=self.conversation,
                branch=self.conversation.branch,
                user=self.conversation.user,
                position=position,
                role=role,
                parts=[{"type": "text", "text": text}],
                token_estimate=estimate_parts((TextPart(text),)),
                created_at=NOW,
            )
            rows.append(row)
            self.conversation.next_position += 1
        with transaction.atomic():
            self.here.extend(Message.objects.bulk_create(rows))
            self.conversation.save(update_fields=["next_position"])

    def fork(self, number: int) -> None:
        """Create a branch after one of the answers, as editing a question does."""
        answers = self.here[1::2]
        if not answers:
            return
        at = number % len(answers)
        branch = Branch.objects.create(conversation=self.conversation, lineage=lineage_below(answers[at]))
        self.heads[str(branch.pk)] = self.here[: 2 * at + 2]
        self._show(branch)

    def switch(self, number: int) -> None:
        self._show(Branch.objects.get(pk=list(self.heads)[number % len(self.heads)]))

    def pin(self, number: int) -> None:
        if self.here:
            Message.objects.filter(pk=self.here[number % len(self.here)].pk).update(pinned=True)

    def compact(self, _: int) -> None:
        row = queue_next_compaction(self.conversation.pk)
        if row is not None:
            compact(row.pk)

    def undo(self, number: int) -> None:
        done = list(Compaction.objects.filter(conversation=self.conversation, status="done"))
        if done:
            row = done[number % len(done)]
            later = Compaction.objects.filter(previous=row, status="done")
            if not later.exists():
                undo_compaction(
                    user=self.conversation.user,
                    conversation_id=str(self.conversation.pk),
                    compaction_id=str(row.pk),
                    now=clock.now(),
                )

    def _show(self, branch: Branch) -> None:
        self.conversation.branch = branch
        self.conversation.save(update_fields=["branch"])


@pytest.mark.mechanism("ours.branches")
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)
@given(steps)
def test_requests_contain_no_text_of_sibling_branches(
    alice: User, model: ModelConfig, wanted: list[tuple[str, int]]
) -> None:
    ModelConfig.objects.filter(pk=model.pk).update(context_size=9_000, max_output_tokens=1_000)
    conversation = new_conversation(alice)
    tree = Tree(conversation, {str(conversation.branch_id): []})
    for step, number in wanted:
        getattr(tree, step)(number)
    event("compacted" if Compaction.objects.filter(conversation=conversation, status="done") else "whole")
    event(f"{min(len(tree.heads), 4)} branches")
    for branch_id, said in tree.heads.items():
        context = load_context(
            conversation=conversation,
            branch=Branch.objects.get(pk=branch_id),
            before_position=conversation.next_position,
            question=text_message("user", "And now?", kind="question"),
            config=default_model(),
            now=clock.now(),
        ).assemble()
        messages = context.request.messages
        own = {f"MARK-{row.position:04d}" for row in said}
        told = set(re.findall(r"MARK-\d{4}", " ".join(message.text for message in messages)))
        assert told <= own
        assert messages[0].role == "system"
        assert messages[-1].text == "And now?"
        assert context.total_tokens - context.parts.system - context.parts.tools <= context.budget_tokens
        kept = [message.position for message in context.view.history]
        assert kept == sorted(kept)
        checkpoint = context.inputs.checkpoint
        covered = checkpoint.last_position if checkpoint else -1
        uncovered = [row.position for row in said if row.position > covered]
        assert uncovered == [] or uncovered[-1] in kept, "the newest stays"
