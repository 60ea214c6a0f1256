"""The branch in which a tool is called: tools do not read texts of other branches of its conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from agents.tools.protocol import ToolCaller
from chatapp.conversations.branches import is_visible, visible_compactions, visible_messages, visible_spans
from chatapp.conversations.models import Branch, Message
from chatapp.files.models import Offload
from chatapp.files.offloads import lines_of_context
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.access import parse_id
from chatapp.operations.errors import NotFound
from chatapp.runs.models import Run, ToolCall


@dataclass(frozen=True, slots=True)
class BranchView:
    """A branch of one conversation. `spans` has, per visible branch, the last position shown; None means all of it."""

    branch: Branch
    spans: Mapping[UUID, int | None]

    def shows(self, branch_id: UUID | None, position: int) -> bool:
        """Return whether the branch shows a message of the conversation."""
        return is_visible(self.spans, branch_id, position)

    def hidden_entries(self, entry_ids: Collection[UUID]) -> set[UUID]:
        """Return those of these entries that a summary of another branch made."""
        made = MemoryEntry.objects.filter(
            pk__in=list(entry_ids), compaction__conversation=self.branch.conversation_id
        )
        hidden = made.exclude(compaction__in=visible_compactions(self.branch).values("pk"))
        return set(hidden.values_list("pk", flat=True))

    def context_lines(self, text: str) -> str:
        """Return the lines of an offloaded context, one message each, without those of other branches."""
        lines = list(lines_of_context(text))
        ids = {parse_id(message_id) for message_id, _ in lines}
        shown = visible_messages(self.branch).filter(conversation=self.branch.conversation_id, pk__in=ids)
        shown_ids = set(shown.values_list("pk", flat=True))
        return "".join(f"{line}\n" for message_id, line in lines if parse_id(message_id) in shown_ids)

    def offloads(self, rows: Iterable[Offload]) -> Iterator[Offload]:
        """Yield the offloads that a run of this branch made or was given."""
        runs = list(
            Run.objects.filter(conversation=self.branch.conversation_id)
            .order_by("created_at", "pk")
            .values_list("pk", "created_at", "answer__branch", "answer__position")
        )
        for row in rows:
            begun = [run for run in runs if run[1] <= row.created_at]
            if row.kind == Offload.Kind.CONTEXT or not begun or self.shows(*begun[-1][2:]):
                yield row  # runs are sequential: the newest one then made it
            elif self.was_given(str(row.pk)):
                yield row

    def was_given(self, reference: str) -> bool:
        """Return whether the result of a call shown in this branch contains this reference."""
        calls = ToolCall.objects.filter(run__conversation=self.branch.conversation_id)
        # Search the JSON as text, because a reference may stand anywhere in a result.
        naming = calls.annotate(said=Cast("result", TextField())).filter(said__contains=reference)
        places = naming.values_list("run__answer__branch", "run__answer__position")
        return any(self.shows(branch_id, position) for branch_id, position in places)


def view_of(caller: ToolCaller) -> BranchView | None:
    """Return the branch of the calling answer; None if there is no run."""
    if not caller.run_id:
        return None
    try:
        run_id, user_id = parse_id(caller.run_id), parse_id(caller.user_id)
    except NotFound:
        return None
    answer = Message.objects.filter(run=run_id, conversation__user=user_id).select_related("branch").first()
    return BranchView(answer.branch, visible_spans(answer.branch)) if answer else None
