"""The API of forgetting: at once, or proposed and confirmed; and its receipts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from ninja import Status
from pydantic import Field, model_validator

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.conversations.schemas.messages import MessageText
from chatapp.forgetting.actions.forget import Done
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.forgetting.proposing import confirm_forgetting, propose_forgetting
from chatapp.forgetting.selectors.forgotten import (
    accessible_proposal,
    accessible_receipt,
    accessible_receipts,
    barring_receipts,
    proposal_items,
)
from chatapp.forgetting.services import (
    forget_all,
    forget_day,
    forget_entry,
    forget_message,
    forget_whole_conversation,
)
from chatapp.long_term.actions.tombstones import lift_tombstones
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Moment, Page, Shape, answers
from memory.bounds import MAX_QUERY_CHARS, Cursor, Day, Id, PageSize

forgetting_router = Router(tags=["memory"])

MAX_ITEMS = 500


ForGood = Annotated[
    bool, Field(description="Do not remember it even if you ask for it later (`remember that…`).")
]


class Wish(Body):
    """What to forget: exactly one of the fields besides `for_good`."""

    entry_id: Id | None = None
    message_id: Id | None = None
    conversation_id: Id | None = None
    day: Day | None = None
    everything: Literal[True] | None = None
    for_good: ForGood = False

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_dump(exclude_none=True, exclude={"for_good"})) != 1:
            raise ValueError("give exactly one of entry_id, message_id, conversation_id, day, everything")
        return self


class Question(Body):
    query: Annotated[MessageText, Field(min_length=1, max_length=MAX_QUERY_CHARS)]


class Confirmation(Body):
    proposal_id: Id
    item_ids: list[Id] = Field(min_length=1, max_length=MAX_ITEMS)
    for_good: ForGood = False


class Item(Shape):
    kind: Literal["message", "entry"]
    id: str
    preview: str
    created_at: Moment
    conversation_id: str | None


class Proposal(Shape):
    proposal_id: str
    items: list[Item]


class Receipt(Shape):
    id: str
    what: Literal["entry", "message", "conversation", "day", "everything", "chosen"]
    removed: dict[str, int] = Field(description="How many items were removed, by kind; no content.")
    at: Moment


class NotLearned(Shape):
    """Sentences of one forgetting that are not learned again. Only their number is known, not their words."""

    id: str
    kind: Literal["entry", "message", "conversation", "day", "everything", "chosen"]
    count: int
    for_good: bool = Field(description="Whether they are not learned even if you ask to remember them.")
    at: Moment


class ForgetAnswer(Receipt):
    proposal: Proposal | None = Field(
        None, description="Other messages and entries that repeat it and still exist."
    )


@forgetting_router.post("/memory/forget", auth=allow("memory"), response=answers(404, 422, ok=ForgetAnswer))
def forget(request: ApiRequest, wish: Wish) -> Any:
    """Forget one entry, one message, one conversation, one day, or everything, with all that was derived from it:
    summaries, files, index, recalled copies. This cannot be undone.

    Forgotten sentences are not learned again, unless you ask to remember them and did not forget them `for_good`. A day
    goes from midnight to midnight in your time zone; an answer belongs to the day on which it was requested, and to the
    day of its question.
    """
    return _answer(request.auth.user, _carry_out(request.auth.user, wish))


def _answer(user: User, done: Done) -> dict[str, Any]:
    answer = _receipt(done.receipt)
    if done.proposal is not None:
        answer["proposal"] = _proposal(user, done.proposal)
    return answer


def _carry_out(user: User, wish: Wish) -> Done:
    now, for_good = clock.now(), wish.for_good
    if wish.entry_id is not None:
        return forget_entry(user, parse_id(wish.entry_id), now=now, for_good=for_good)
    if wish.message_id is not None:
        return forget_message(user, parse_id(wish.message_id), now=now, for_good=for_good)
    if wish.conversation_id is not None:
        return forget_whole_conversation(user, wish.conversation_id, now=now, for_good=for_good)
    if wish.day is not None:
        return forget_day(user, wish.day, now=now, for_good=for_good)
    return forget_all(user, now=now, for_good=for_good)


def _proposed_again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return read_proposal(request, made)


@forgetting_router.post("/memory/forget/propose", auth=allow("memory"), response=answers(422, ok=Proposal))
@creates(_proposed_again)
def propose(request: ApiRequest, question: Question) -> Any:
    """Propose what a request such as "forget that I live in Paris" may mean. Nothing is forgotten until you confirm."""
    user = request.auth.user
    return _proposal(user, propose_forgetting(user, question.query, now=clock.now()))


@forgetting_router.get(
    "/memory/forget/proposals/{proposal_id}",
    auth=allow("memory", "read"),
    response=answers(404, ok=Proposal),
)
def read_proposal(request: ApiRequest, proposal_id: str) -> Any:
    """Return the items of a proposal that still exist, with their current text. The event `memory.forget_proposed`
    contains the proposal's id."""
    return _proposal(request.auth.user, accessible_proposal(request.auth.user, proposal_id))


@forgetting_router.post(
    "/memory/forget/confirm", auth=allow("memory"), response=answers(404, 422, ok=ForgetAnswer)
)
def confirm(request: ApiRequest, confirmation: Confirmation) -> Any:
    """Forget the chosen items of a proposal. The response proposes repetitions found elsewhere, but only once: a second
    confirmation returns the same receipt alone."""
    done = confirm_forgetting(
        request.auth.user,
        confirmation.proposal_id,
        confirmation.item_ids,
        for_good=confirmation.for_good,
        now=clock.now(),
    )
    return _answer(request.auth.user, done)


@forgetting_router.get(
    "/memory/receipts",
    auth=allow("memory", "read"),
    response=answers(ok=Page[Receipt]),
)
def receipts(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List receipts, newest first: what kind of thing was forgotten, when, and how much was removed; no content."""
    return read_page(accessible_receipts(request.auth.user), "at", cursor, limit, _receipt)


@forgetting_router.get(
    "/memory/not-learned",
    auth=allow("memory", "read"),
    response=answers(ok=Page[NotLearned]),
)
def not_learned(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the forgettings whose sentences are not learned again, newest first: when, and how many; no words."""

    def shape(row: Any) -> dict[str, Any]:
        return _receipt(row) | {"kind": row.what, "count": row.count, "for_good": row.for_good}

    return read_page(barring_receipts(request.auth.user), "at", cursor, limit, shape)


@forgetting_router.delete("/memory/not-learned/{receipt_id}", auth=allow("memory"), response=answers(404))
def learn_again(request: ApiRequest, receipt_id: str) -> Any:
    """Allow the sentences forgotten with this receipt to be learned again when you repeat them."""
    lift_tombstones(receipt=accessible_receipt(request.auth.user, receipt_id))
    return Status(204, None)


def _receipt(row: ForgetReceipt) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "what": row.what,
        "removed": row.removed,
        "at": clock.iso_time(row.at),
    }


def _proposal(user: User, row: ForgetProposal) -> dict[str, Any]:
    return {
        "proposal_id": str(row.pk),
        "items": proposal_items(user, row.items),
        "receipt": _receipt(row.receipt) if row.receipt else None,
    }
