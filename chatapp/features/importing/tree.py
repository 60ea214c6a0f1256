"""Converts the tree of a source into positions and branches.

Positions follow time, and a message always comes after its parent. The path that the source shows is the first branch;
every other path starts a branch where it leaves an earlier one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heappop, heappush

from chatapp.conversations.actions.imports import ImportedBranches, ImportedMessage, Lineage
from chatapp.features.importing.values import SourceConversation, SourceMessage, Unreadable
from memory.bounds import MAX_IMPORTED

MAX_BRANCHES = 500
MAX_FORKS = 50
"""Ancestors of one branch: the query for its messages has a condition for each."""
# Sources contain nodes without text, which count here before they are left out.
MAX_SOURCE_MESSAGES = 2 * MAX_IMPORTED


@dataclass(frozen=True, slots=True)
class BranchedMessages:
    messages: list[ImportedMessage]
    branches: ImportedBranches
    positions: list[int]
    """The positions of the messages in an export of this service; empty for other sources."""
    places: Mapping[str, int] = field(default_factory=dict)
    """The new positions by message id in an export of this service; empty for other sources."""


def build_branches(source: SourceConversation) -> BranchedMessages:
    """Return the messages in order, with branches. Raise Unreadable."""
    if len(source.messages) > MAX_SOURCE_MESSAGES:
        raise Unreadable(f"It has more than {MAX_IMPORTED:,} messages.")
    kept = _linked(source)
    if not kept and not source.branches:  # our own export may contain an empty chat
        raise Unreadable("It has no messages with text.")
    if len(kept) > MAX_IMPORTED:
        raise Unreadable(f"It has more than {MAX_IMPORTED:,} messages.")
    if source.branches:
        return _as_exported(source, list(kept.values()))
    ordered = _ordered(source, kept)
    shown = _shown_path(source, kept, ordered)
    grown = _branched(source, ordered, shown)
    if grown is None:
        source.left_out["versions that are not shown, in chats with too many branches"] += len(kept) - len(
            shown
        )
        # The shown path has only one branch, so it always fits.
        grown = _branched(source, [each for each in ordered if each.id in shown], shown)
        assert grown is not None
    return grown


def _linked(source: SourceConversation) -> dict[str, SourceMessage]:
    """Return the messages with text, by id. The parent of each becomes its nearest ancestor with text."""
    all_of_them = {message.id: message for message in source.messages}
    nearest: dict[str, str | None] = {}
    for message in all_of_them.values():
        at = message.parent
        above = all_of_them.get(at) if at is not None else None
        if at is None or (above is not None and above.role and above is not message):
            continue  # true of all messages in most exports
        passed: list[str] = []
        # The parents in a damaged file may form a cycle.
        seen = {message.id}
        while at is not None and at not in nearest:
            above = all_of_them.get(at)
            if above is None or at in seen:
                at = None
            elif above.role:
                break
            else:
                seen.add(at)
                passed.append(at)
                at = above.parent
        found = nearest.get(at, at) if at is not None else None
        # Walk each gap once, however many messages follow it.
        nearest.update(dict.fromkeys(passed, found))
        message.parent = found
    return {message.id: message for message in all_of_them.values() if message.role}


def _ordered(source: SourceConversation, kept: Mapping[str, SourceMessage]) -> list[SourceMessage]:
    """Return the messages by time, each after its parent. A message without a time has that of its parent."""
    # The order in the file breaks ties.
    number = {message_id: at for at, message_id in enumerate(kept)}
    children: dict[str, list[SourceMessage]] = {}
    ready: list[tuple[datetime, int]] = []
    start = source.created_at or datetime.min.replace(tzinfo=UTC)
    for message in kept.values():
        if message.parent is None:
            heappush(ready, (message.created_at or start, number[message.id]))
        else:
            children.setdefault(message.parent, []).append(message)
    by_number, ordered = list(kept.values()), []
    while ready:
        said_at, at = heappop(ready)
        message = by_number[at]
        ordered.append(message)
        for child in children.get(message.id, ()):
            # Never before its parent, whatever time the source gives.
            heappush(ready, (max(said_at, child.created_at or said_at), number[child.id]))
    if len(ordered) < len(kept):
        source.left_out["messages in a cycle of answers"] += len(kept) - len(ordered)
    if not ordered:
        raise Unreadable("Its messages answer each other in a cycle.")
    return ordered


def _shown_path(
    source: SourceConversation, kept: Mapping[str, SourceMessage], ordered: Sequence[SourceMessage]
) -> set[str]:
    reached = {message.id for message in ordered}
    above = {message.id: message.parent for message in source.messages}
    at: str | None = source.shown
    passed: set[str] = set()
    # If the source shows a message that is left out, use its nearest ancestor.
    while at is not None and at not in reached and at not in passed:
        passed.add(at)
        at = above.get(at)
    path: set[str] = set()
    at = at if at in reached else ordered[-1].id
    while at is not None:
        path.add(at)
        at = kept[at].parent
    return path


def _branched(
    source: SourceConversation, ordered: Sequence[SourceMessage], shown: set[str]
) -> BranchedMessages | None:
    """Return None if there are too many branches."""
    lineages: list[Lineage] = [()]
    place: dict[str, tuple[int, int]] = {}  # id → (position, branch)
    last_of = [-1]
    messages: list[ImportedMessage] = []
    for position, message in enumerate(ordered):
        parent, branch = place.get(message.parent or "", (-1, 0))
        if message.id in shown:
            branch = 0
        # A branch continues only after its last message: a second answer starts another branch.
        elif message.parent is None or message.parent in shown or last_of[branch] != parent:
            lineages.append(() if message.parent is None else ((branch, parent), *lineages[branch]))
            last_of.append(-1)
            branch = len(lineages) - 1
            if len(lineages) > MAX_BRANCHES or len(lineages[-1]) > MAX_FORKS:
                return None
        place[message.id], last_of[branch] = (position, branch), position
        said_at = message.created_at or (messages[parent].created_at if parent >= 0 else source.created_at)
        above = parent if parent >= 0 else None
        messages.append(ImportedMessage(message.role, message.text, said_at, above, branch, message.columns))
    return BranchedMessages(messages, ImportedBranches(lineages), [])


def _as_exported(source: SourceConversation, kept: Sequence[SourceMessage]) -> BranchedMessages:
    """Return the branches of an export of this service. Raise Unreadable if it is inconsistent."""
    names = list(source.branches)
    if len(names) > MAX_BRANCHES or any(len(each) > MAX_BRANCHES for each in source.branches.values()):
        raise Unreadable(f"It has more than {MAX_BRANCHES} branches.")
    index = {name: at for at, name in enumerate(names)}
    positions = [message.columns.pop("position") for message in kept]
    in_order = sorted(range(len(kept)), key=positions.__getitem__)
    kept, positions = [kept[at] for at in in_order], sorted(positions)
    if len(set(positions)) < len(positions):
        raise Unreadable("Two of its messages have the same position.")
    place = {message.id: at for at, message in enumerate(kept)}
    lineages: list[Lineage] = []
    for lineage in source.branches.values():
        if not all(name in index for name, _ in lineage):
            raise Unreadable("A branch starts from an unknown branch.")
        # Positions have no gaps here: use the last message up to the old position.
        lineages.append(tuple((index[name], bisect_right(positions, upto) - 1) for name, upto in lineage))
    messages = []
    for message in kept:
        if message.branch not in index:
            raise Unreadable("A message is in an unknown branch.")
        above = place.get(message.parent or "")
        # In our exports, a parent is never after its message.
        above = above if above is not None and above < place[message.id] else None
        branch = index[message.branch]
        messages.append(
            ImportedMessage(message.role, message.text, message.created_at, above, branch, message.columns)
        )
    return BranchedMessages(
        messages, ImportedBranches(lineages, index.get(source.shown, 0)), positions, place
    )


def new_span(positions: Sequence[int], first: int, last: int) -> tuple[int, int] | None:
    """Return the new (first, last) positions of the messages `first` to `last` of an export; None if none exist."""
    span = bisect_left(positions, first), bisect_right(positions, last) - 1
    return span if span[0] <= span[1] else None
