"""Budgets set by operators, the usage of each in a period, and what running calls hold of it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext

from chatapp.operations.database.ids import new_id

MAX_TOKENS = 10**15
MAX_MONEY = 10**6


class Budget(models.Model):
    class Scope(models.TextChoices):
        DEPLOYMENT = "deployment", "everybody together"
        GROUP = "group", "a group together"
        EVERY_USER = "every_user", "each user"
        USER = "user", "one user"

    class Period(models.TextChoices):
        DAY = "day", "a day"
        MONTH = "month", "a month"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    scope = models.CharField("for", max_length=10, choices=Scope)
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Takes the place of the budget of each user for the same period.",
    )
    period = models.CharField(
        "per", max_length=5, choices=Period, help_text="Days and months begin at midnight UTC."
    )
    tokens = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_TOKENS)],
        help_text="Input and output. Empty: any number.",
    )
    money = models.DecimalField(
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_MONEY)],
        help_text="US dollars, as far as prices are known. Empty: any amount.",
    )

    class Meta:
        ordering = ["scope", "period", "id"]
        constraints = [
            models.UniqueConstraint(
                # One constraint for each scope: NULLs are distinct, so a single one would allow duplicates.
                fields=["scope", "period"],
                condition=Q(scope__in=["deployment", "every_user"]),
                name="budget_once",
            ),
            models.UniqueConstraint(
                fields=["group", "period"], condition=Q(scope="group"), name="budget_once_per_group"
            ),
            models.UniqueConstraint(
                fields=["user", "period"], condition=Q(scope="user"), name="budget_once_per_user"
            ),
            models.CheckConstraint(
                condition=Q(scope="group", group__isnull=False, user=None)
                | Q(scope="user", user__isnull=False, group=None)
                | Q(scope__in=["deployment", "every_user"], group=None, user=None),
                name="budget_of_its_scope",
            ),
            models.CheckConstraint(
                # 0 is a limit: nothing may be spent.
                condition=Q(tokens__gte=0) | Q(tokens=None, money__isnull=False),
                name="budget_has_a_limit",
            ),
        ]

    def __str__(self) -> str:
        whose = self.group or self.user or self.get_scope_display()
        return gettext("%(whose)s: %(period)s") % {"whose": whose, "period": self.get_period_display()}

    def clean(self) -> None:
        named = {"group": self.group_id, "user": self.user_id}
        for field, value in named.items():
            if self.scope == field and value is None:
                raise ValidationError({field: gettext("Choose one, or another scope.")})
            if self.scope != field and value is not None:
                told = gettext("Leave this empty, or choose “%(scope)s”.")
                raise ValidationError({field: told % {"scope": gettext(self.Scope(field).label)}})
        if self.tokens is None and self.money is None:
            raise ValidationError(gettext("Enter tokens, an amount of money, or both."))


class BudgetPeriod(models.Model):
    """Usage of one budget in one day or month. `user` is None if several users share it.

    Money is counted in billionths of a dollar, so that sums are exact on every database.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="periods")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    starts_on = models.DateField()
    used_tokens = models.BigIntegerField(default=0)
    used_nanos = models.BigIntegerField(default=0)
    held_tokens = models.BigIntegerField(default=0)
    held_nanos = models.BigIntegerField(default=0)
    warned_at = models.DateTimeField(null=True)


class BudgetHold(models.Model):
    """What one running model call holds of one period until it settles; after `expires_at` its process is gone."""

    call_id = models.UUIDField()
    period = models.ForeignKey(BudgetPeriod, on_delete=models.CASCADE, related_name="holds")
    tokens = models.BigIntegerField()
    nanos = models.BigIntegerField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Finds the hold when a call settles.
            models.UniqueConstraint(fields=["call_id", "period"], name="budget_hold_once"),
        ]
        indexes = [
            # Finds expired holds in the sweep.
            models.Index(fields=["expires_at"], name="budget_hold_expires"),
        ]
