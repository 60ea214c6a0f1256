"""What was found, as it stands: what took something's place comes before it, and what is over says since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chatapp.recall.selectors.claims import Superseded, repeated_claims, superseded_claims
from chatapp.recall.selectors.sources import Found


@dataclass(frozen=True, slots=True)
class Standing:
    """`over` is None for what still holds, as far as anybody said."""

    found: Found
    over: Superseded | None = None


def judge_found(user_id: UUID, found: Sequence[Found], *, before: datetime | None = None) -> list[Standing]:
    """Best first, but the current ahead of what it superseded. With `before`, as it was known until then.

    Nothing is hidden: the older stays, marked.
    """
    claims = superseded_claims(user_id, _ids(found), before=before)
    told = [Standing(one, _over(one, claims)) for one in found]
    extracted = [one.found for one in told if one.over is None and one.found.entry_id is not None]
    repeats = repeated_claims(user_id, [one.text for one in extracted], before=before)
    told = [Standing(one.found, one.over or _last(repeats.get(one.found.text, ()))) for one in told]
    return _current_first(told)


def _ids(found: Iterable[Found]) -> list[UUID]:
    return [source_id for one in found if (source_id := _id(one)) is not None]


def _id(found: Found) -> UUID | None:
    return found.message_id or found.entry_id


def _over(found: Found, claims: Mapping[UUID, Sequence[Superseded]]) -> Superseded | None:
    """The last thing that was said in place of any of it."""
    source_id, end = _id(found), found.start + len(found.text)
    of_source = claims.get(source_id, ()) if source_id else ()
    return _last([claim for claim in of_source if claim.start < end and claim.end > found.start])


def _last(claims: Sequence[Superseded]) -> Superseded | None:
    return max(claims, key=lambda claim: claim.until, default=None)


def _current_first(told: Sequence[Standing]) -> list[Standing]:
    ordered: list[Standing] = []
    waiting = {_id(one.found): one for one in told}
    for one in told:
        if _id(one.found) not in waiting:
            continue
        newer = waiting.pop(one.over.message_id or one.over.entry_id, None) if one.over else None
        waiting.pop(_id(one.found), None)
        if newer is not None:
            ordered.append(newer)
        elif one.over is not None and not any(_says(one.over, other.found) for other in ordered):
            ordered.append(_newer(one, one.over))
        ordered.append(one)
    return ordered


def _says(over: Superseded, found: Found) -> bool:
    return _id(found) == (over.message_id or over.entry_id)


def _newer(one: Standing, over: Superseded) -> Standing:
    """What took its place, though the question does not name it."""
    return Standing(
        Found(
            kind="message" if over.message_id else "entry",
            text=over.text,
            score=one.found.score,
            said_at=over.until,
            is_whole=False,
            role="user" if over.message_id else "",
            conversation_id=over.conversation_id,
            message_id=over.message_id,
            entry_id=over.entry_id,
            start=over.source_start,
        )
    )
