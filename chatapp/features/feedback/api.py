"""The API to rate answers, withdraw ratings and read them."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.features.feedback.actions import rate_answer, withdraw_rating
from chatapp.features.feedback.models import AnswerFeedback
from chatapp.features.feedback.selectors import ratings_in
from chatapp.operations import clock
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Page, Shape, answers

router = Router(tags=["feedback"])
PATH = "/conversations/{conversation_id}/messages/{message_id}/feedback"

Reason = Literal["", "wrong", "incomplete", "ignored", "long", "unsafe", "other"]


class NewFeedback(Body):
    rating: Literal["good", "bad"]
    reason: Reason = ""


class Feedback(Shape):
    message_id: str
    rating: Literal["good", "bad"]
    reason: Reason


def _shape(row: AnswerFeedback) -> dict[str, Any]:
    return {"message_id": str(row.message_id), "rating": row.rating, "reason": row.reason}


@router.get(
    "/conversations/{conversation_id}/feedback",
    auth=allow("chat", "read"),
    response=answers(404, ok=Page[Feedback]),
)
def list_feedback(request: ApiRequest, conversation_id: str) -> Any:
    """List your newest 1,000 ratings of answers in the conversation."""
    return {
        "items": [_shape(row) for row in ratings_in(request.auth.user, conversation_id)],
        "next_cursor": None,
    }


@router.put(PATH, auth=allow("chat"), response=answers(404, ok=Feedback))
def rate(request: ApiRequest, conversation_id: str, message_id: str, given: NewFeedback) -> Any:
    """Rate an answer. Operators see the number of ratings by model and agent, but no text."""
    row = rate_answer(
        user=request.auth.user,
        conversation_id=conversation_id,
        message_id=message_id,
        rating=given.rating,
        reason=given.reason,
        now=clock.now(),
    )
    return _shape(row)


@router.delete(PATH, auth=allow("chat"), response=answers(404))
def withdraw(request: ApiRequest, conversation_id: str, message_id: str) -> Any:
    withdraw_rating(user=request.auth.user, conversation_id=conversation_id, message_id=message_id)
    return Status(204, None)
