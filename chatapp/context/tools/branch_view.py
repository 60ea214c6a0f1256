"""What the branch shows that a tool is called in: texts of other branches of its conversation are not read there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from agents.tools.protocol import ToolCaller
from chatapp.conversations.branches import visible_compactions, visible_messages, visible_spans
from chatapp.conversations.models import Branch, Message
from chatapp.files.models import Offload
from chatapp.files.offloads import lines_of_context
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.access import parse_id
from chatapp.operations.errors import NotFound
from chatapp.runs.models import Run, ToolCall


@dataclass(frozen=True, slots=True)
class BranchView:
    """A branch of one conversation. `spans` are the last positions it shows of each branch; None: to the end."""

    branch: Branch
    spans: Mapping[UUID, int | None]

    def shows(self, branch_id: UUID | None, position: int) -> bool:
        """Return whether a message of the conversation is in it."""
        if branch_id is None:
            return False
        upto = self.spans.get(branch_id, -1)
        return upto is None or position <= upto

    def hidden_entries(self, entry_ids: Collection[UUID]) -> set[UUID]:
        """Return the entries among these that a summary of another branch made."""
        made = MemoryEntry.objects.filter(
            pk__in=list(entry_ids), compaction__conversation=self.branch.conversation_id
        )
        hidden = made.exclude(compaction__in=visible_compactions(self.branch).values("pk"))
        return set(hidden.values_list("pk", flat=True))

    def context_lines(self, text: str) -> str:
        """Return the messages that left the context, a line each, without those of other branches."""
        lines = list(lines_of_context(text))
        ids = {parse_id(message_id) for message_id, _ in lines}
        shown = visible_messages(self.branch).filter(conversation=self.branch.conversation_id, pk__in=ids)
        shown_ids = set(shown.values_list("pk", flat=True))
        return "".join(f"{line}\n" for message_id, line in lines if parse_id(message_id) in shown_ids)

    def offloads(self, rows: Iterable[Offload]) -> Iterator[Offload]:
        """Yield the offloads that a run of this branch made, or was given."""
        runs = list(
            Run.objects.filter(conversation=self.branch.conversation_id)
            .order_by("created_at", "pk")
            .values_list("pk", "created_at", "answer__branch", "answer__position")
        )
        for row in rows:
            begun = [run for run in runs if run[1] <= row.created_at]
            if row.kind == Offload.Kind.CONTEXT or not begun or self.shows(*begun[-1][2:]):
                yield row  # one run at a time: it was the newest then
            elif self.was_given(str(row.pk)):
                yield row

    def was_given(self, reference: str) -> bool:
        """Return whether the result of a call that it shows names this reference."""
        calls = ToolCall.objects.filter(run__conversation=self.branch.conversation_id)
        # As text, because a reference may stand anywhere in a result.
        naming = calls.annotate(said=Cast("result", TextField())).filter(said__contains=reference)
        places = naming.values_list("run__answer__branch", "run__answer__position")
        return any(self.shows(branch_id, position) for branch_id, position in places)


def view_of(caller: ToolCaller) -> BranchView | None:
    """Return the branch of the answer that calls; None where there is no run."""
    if not caller.run_id:
        return None
    try:
        run_id, user_id = parse_id(caller.run_id), parse_id(caller.user_id)
    except NotFound:
        return None
    answer = Message.objects.filter(run=run_id, conversation__user=user_id).select_related("branch").first()
    return BranchView(answer.branch, dict(visible_spans(answer.branch))) if answer else None
