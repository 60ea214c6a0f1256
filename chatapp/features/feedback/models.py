"""Users' ratings of answers, without any text of the chat or of the user."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.operations.database.ids import new_id


class AnswerFeedback(models.Model):
    """A user's rating of an answer. If the answer is forgotten, the rating stays linked to it; if its row is
    deleted, the rating is still counted."""

    class Rating(models.TextChoices):
        GOOD = "good"
        BAD = "bad"

    class Reason(models.TextChoices):
        NONE = "", "not said"
        WRONG = "wrong", "not correct"
        INCOMPLETE = "incomplete", "something is missing"
        IGNORED = "ignored", "did not do what was asked"
        LONG = "long", "too long"
        UNSAFE = "unsafe", "harmful or inappropriate"
        OTHER = "other", "something else"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    message = models.ForeignKey(
        "chatapp.Message", null=True, on_delete=models.SET_NULL, related_name="feedback"
    )
    rating = models.CharField(max_length=4, choices=Rating)
    reason = models.CharField(max_length=12, choices=Reason, blank=True)
    model_name = models.CharField(max_length=200, blank=True)
    agent = models.ForeignKey("chatapp.Agent", null=True, on_delete=models.SET_NULL, related_name="+")
    given_at = models.DateTimeField()

    class Meta:
        verbose_name = "rating of an answer"
        verbose_name_plural = "ratings of answers"
        # NULLs are never equal, so any number of ratings may have lost their answers.
        constraints = [models.UniqueConstraint(fields=["message", "user"], name="feedback_once")]

    def __str__(self) -> str:
        return str(self.id)
