"""Reads models, their sizes from each source, and sums of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncHour

from agents.events import UsageTotals
from chatapp.accounts.group_access.selectors import allowed_to
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.caching.editions import cached, cached_for_user
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.database.ids import first_id_at
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.providers.model_facts import find_facts
from chatapp.providers.models import ModelConfig, Usage, UsageHour
from chatapp.providers.named_windows import applicable_window
from chatapp.providers.schemas import usage_shape
from chatapp.providers.usage import CallUsage
from chatapp.runs.models import Run
from memory.budget import Sizes


@dataclass(frozen=True, slots=True)
class BudgetInputs:
    """The sizes of a model from each source, the strongest first; 0 = unknown."""

    model: Sizes
    """Entered by the operator."""
    environment: Sizes
    detected: Sizes
    """Named in the provider's model list, or else publicly known for the name."""


def models_by_preference() -> QuerySet[ModelConfig]:
    """Return the models, the default first, real models before the demo."""
    # Sort by kind in descending order: `openai` comes before `demo`.
    return ModelConfig.objects.select_related("fast_model").order_by("-is_default", "-kind", "name")


def usable_models(user_id: UUID | None) -> QuerySet[ModelConfig]:
    """Return the enabled models that the user's groups allow, the default first; without a user, all enabled ones."""
    enabled = models_by_preference().filter(enabled=True)
    allowed = allowed_to(user_id).models if user_id else None
    return enabled if allowed is None else enabled.filter(pk__in=allowed)


def offered_models(models: Sequence[ModelConfig]) -> set[UUID]:
    """Return the ids of the models to offer: the first, which is the default, and the others except the demo and fast
    models of others."""
    fast = {model.fast_model_id for model in models if model.fast_model_id != model.pk}
    hidden = {model.pk for model in models[1:] if model.kind == ModelConfig.Kind.DEMO or model.pk in fast}
    return {model.pk for model in models} - hidden


def may_use(model: ModelConfig, user_id: UUID) -> bool:
    """Return whether the user's `usable_models` contain the model."""
    allowed = allowed_to(user_id).models
    return model.enabled and (allowed is None or model.pk in allowed)


def default_model(user_id: UUID | None = None) -> ModelConfig:
    """Return the model to use if none is chosen: the default, or the first that the user's groups allow.

    Raise NotFound.
    """
    if user_id and allowed_to(user_id).models is not None:
        model = cached_for_user(user_id, "default model", lambda: usable_models(user_id).first())
    else:
        # Users without restrictions share one cached value.
        model = cached("default model", lambda: usable_models(None).first())
    if model is None:
        raise NotFound("No model is enabled. An operator can enable one in the admin panel, under Models.")
    # Copy the cached value, which callers must not change.
    return copy(model)


def has_real_default() -> bool:
    """Return whether new conversations begin with a model other than the demo."""
    defaults = ModelConfig.objects.filter(is_default=True)
    return defaults.exclude(kind=ModelConfig.Kind.DEMO).exists()


def model_of(conversation: Conversation) -> ModelConfig:
    """Return the conversation's model, else its agent's, else the user's default. Skip models that are disabled or not
    allowed for this user. Raise NotFound."""
    user_id = conversation.owner_id
    agent = conversation.agent if conversation.agent and conversation.agent.enabled else None
    chosen = (conversation.model, agent.model if agent else None)
    usable = (model for model in chosen if model is not None and may_use(model, user_id))
    return next(usable, None) or default_model(user_id)


def accessible_model(user_id: UUID | None, name_or_id: str | UUID) -> ModelConfig:
    """Return a model by id, name, or the endpoint's name for it. Raise NotFound, also if it is disabled or not allowed
    for this user. Without a user, all enabled models are found."""
    models = usable_models(user_id)
    pk, name = uuid_or_none(name_or_id), str(name_or_id)
    model = models.filter(pk=pk).first() if pk else None
    model = model or models.filter(name=name).first() or models.filter(model_id=name).first()
    if model is None:
        raise NotFound("This model does not exist, or it is switched off.", code="model_not_found")
    return model


def models_of_unknown_size() -> list[ModelConfig]:
    """Return enabled models without a window from an operator or the provider."""
    unknown = ModelConfig.objects.filter(enabled=True, context_size=0, detected_context_size=0)
    return list(unknown.exclude(kind=ModelConfig.Kind.DEMO))


def fast_model_of(config: ModelConfig) -> ModelConfig:
    """Return the model for summaries, memory and steps of plans: the fast model if it is enabled, else itself."""
    fast = config.fast_model
    return fast if fast and fast.enabled else config


def resolve_budget_inputs(config: ModelConfig) -> BudgetInputs:
    return BudgetInputs(
        model=Sizes(config.context_size, config.max_output_tokens),
        environment=_environment_sizes(config),
        detected=_detected_sizes(config),
    )


def named_window(config: ModelConfig, conversation: Conversation | None, now: datetime) -> int | None:
    """Return the smaller window that a provider named and that applies, or None."""
    own = conversation.named_windows.get(str(config.pk), {}) if conversation else {}
    return applicable_window(config.named_window, own, now)


def _environment_sizes(config: ModelConfig) -> Sizes:
    """Return the sizes of the environment: the same for all models, except for the fast model's own window."""
    window = settings.LLM_CONTEXT_SIZE
    if config.origin == ModelConfig.Origin.ENVIRONMENT_FAST:
        window = settings.FAST_LLM_CONTEXT_SIZE or window
    return Sizes(window, settings.LLM_MAX_OUTPUT_TOKENS)


def _detected_sizes(config: ModelConfig) -> Sizes:
    facts = find_facts(config.model_id, config.base_url)
    window = config.detected_context_size or facts.context_size or 0
    output = config.detected_max_output_tokens or facts.max_output_tokens or 0
    if config.detected_context_size and not config.detected_max_output_tokens:
        # The public output limit belongs to the full window; this endpoint may serve a smaller one.
        output = min(output, window // 2)
    return Sizes(window, output)


GroupBy = Literal["day", "user", "group", "model", "agent", "purpose", "conversation"]


class _UtcDay(TruncDate):
    """The UTC day of a timestamp. SQLite stores UTC already, and Django would call Python for each row."""

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, Any]:
        moment, values = compiler.compile(self.lhs)
        return f"SUBSTR({moment}, 1, 10)", values


_KEYS = {
    "day": _UtcDay("created_at", tzinfo=UTC),
    "user": F("user__email"),
    "group": F("user__groups__name"),
    "model": F("model_name"),
    "agent": F("conversation__agent__name"),
    "purpose": F("purpose"),
    "conversation": F("conversation_id"),
}
_SUMS = {
    "calls": Count("id"),
    "total_input": Sum("input_tokens", default=0),
    "total_output": Sum("output_tokens", default=0),
    "total_cached": Sum("cached_tokens", default=0),
    "total_cost": Sum("cost"),
    "total_kept_out": Sum("kept_out_tokens", default=0),
    "total_compaction_saved": Sum("compaction_saved"),
    "total_cache_saved": Sum("cache_saved"),
}


USAGE_DAYS = 30
MAX_USAGE_DAYS = 3_660


def usage_days(first: date | None, last: date | None) -> tuple[date, date]:
    """Return (first, last) of the days to sum up, by default the last 30. Raise InvalidInput."""
    last = last or clock.now().date()
    # `last` may be too close to the smallest possible date.
    first = first or max(date.min + timedelta(days=USAGE_DAYS), last) - timedelta(days=USAGE_DAYS)
    if first > last or (last - first).days > MAX_USAGE_DAYS:
        problem = "must not be after `to`, nor more than ten years before it"
        sentence = "`from` must not be after `to`, nor more than ten years before it."
        raise InvalidInput.in_field("from", problem, sentence)
    return first, last


def usage_by(
    user: User | None, *, first: date, last: date, group_by: GroupBy
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return (the groups in the order of their keys, their total), as API responses. Days are UTC and include `last`;
    `user` None means all users. A user in several groups counts in each."""
    rows = _within(user, first, last)
    groups = rows.annotate(key=_KEYS[group_by]).values("key").annotate(**_SUMS).order_by("key")
    return [usage_shape(str(group["key"] or ""), group) for group in groups], usage_shape(
        "total", rows.aggregate(**_SUMS)
    )


def _within(user: User | None, first: date, last: date) -> QuerySet[Usage]:
    # The end is the last moment of a day: there is no day after the last one of the calendar.
    days = (datetime.combine(first, time.min, UTC), datetime.combine(last, time.max, UTC))
    rows = Usage.objects.filter(created_at__range=days)
    return rows if user is None else rows.filter(user=user)


STORED_WITHIN = timedelta(hours=3)


def usage_hours(since: datetime, until: datetime | None = None) -> list[UsageHour]:
    """Return the usage of all users for each hour with a model call, summed from the ledger, as unsaved rows.

    Rows are found by their ids, which are in order of time.
    """
    # An id is made when its call ends, but its row is stored after the answer, or after an outage of the database.
    rows = Usage.objects.filter(pk__gte=first_id_at(since - STORED_WITHIN), created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    hours = rows.annotate(hour=TruncHour("created_at", tzinfo=UTC)).values("hour").order_by("hour")
    sums = hours.annotate(
        total_input=Sum("input_tokens"), total_output=Sum("output_tokens"), total_cost=Sum("cost")
    )
    return [
        UsageHour(
            hour=row["hour"],
            input_tokens=row["total_input"],
            output_tokens=row["total_output"],
            cost=row["total_cost"],
        )
        for row in sums
    ]


def usage_by_day(first: date, last: date) -> list[dict[str, Any]]:
    """Return tokens and cost of all users for each of these UTC days, including days without usage.

    Past hours are read from their sums, so that the panel takes the same time with any number of calls.
    """
    start = datetime.combine(first, time.min, UTC)
    summed = UsageHour.objects.order_by("hour")
    newest = summed.last()
    live_from = max(start, newest.hour + timedelta(hours=1)) if newest else start
    days: dict[date, dict[str, Any]] = {
        first + timedelta(days=number): {"input_tokens": 0, "output_tokens": 0, "cost": None}
        for number in range((last - first).days + 1)
    }
    for hour in (*summed.filter(hour__gte=start), *usage_hours(live_from)):
        day = days.get(hour.hour.astimezone(UTC).date())
        if day is not None:
            day["input_tokens"] += hour.input_tokens
            day["output_tokens"] += hour.output_tokens
            day["cost"] = day["cost"] if hour.cost is None else (day["cost"] or 0) + hour.cost
    return [{"key": day, **sums} for day, sums in days.items()]


def totals_of_run(run: Run) -> UsageTotals:
    """Return sums of the run's calls, as `totals_of` does."""
    return totals_of(list(Usage.objects.filter(run=run)))


def totals_of(calls: Sequence[Usage | CallUsage]) -> UsageTotals:
    """Return sums of calls. Input and output include compaction; `compaction_tokens` is its share."""
    costs = [call.cost for call in calls if call.cost is not None]
    return UsageTotals(
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cached_tokens=sum(call.cached_tokens for call in calls),
        compaction_tokens=sum(
            call.input_tokens + call.output_tokens for call in calls if call.purpose == "compaction"
        ),
        cost=float(sum(costs)) if costs else None,
    )


def unrecorded_calls(calls: Sequence[CallUsage]) -> list[CallUsage]:
    """Return the calls that are not stored yet; a retried write finds some of them stored."""
    rows = Usage.objects.filter(pk__in=[call.id for call in calls])
    recorded = set(rows.values_list("pk", flat=True))
    return [call for call in calls if call.id not in recorded]
