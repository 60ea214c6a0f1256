"""Writes model configurations (edited, from the environment, detected), and the ledger of model calls."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.operations import clock, encryption
from chatapp.operations.database.statements import insert_rows
from chatapp.providers.models import ModelConfig, Usage, UsageHour
from chatapp.providers.named_windows import BELIEVED_FOR, CONFIRMATIONS_FOR_ALL, NamedWindow
from chatapp.providers.selectors import has_real_default, usage_hours
from chatapp.providers.usage import CallTimes, CallUsage
from chatapp.runs.models import Run, RunStep

log = logging.getLogger(__name__)

Origin = ModelConfig.Origin
DEMO_NAME = "Demo"
LEARNED = (
    "detected_context_size",
    "detected_max_output_tokens",
    "named_window",
    "token_ratio",
    "token_ratio_samples",
    "test_result",
    "tested_at",
)
OPENAI_FIRST_MODEL = "gpt-5-mini"
OPENAI_FIRST_FAST_MODEL = "gpt-5-nano"


@dataclass(frozen=True, slots=True)
class EnvironmentModels:
    """The models of the environment. An empty string means none."""

    base_url: str = ""
    api_key: str = ""
    model: str = ""
    fast_model: str = ""


def save_model_config(
    *, config: ModelConfig, api_key: str | None = None, replaces_demo: bool = True
) -> ModelConfig:
    """Store a row as edited and return it. `api_key`: None keeps the stored one, "" removes it.

    A new endpoint or model resets detected and learned values. With `replaces_demo`, a newly enabled model replaces
    the Demo model as the default.
    """
    with transaction.atomic():
        _lock_models()
        former = ModelConfig.objects.filter(pk=config.pk).first()
        if api_key is not None:
            config.api_key_encrypted = encryption.encrypt(api_key.strip())
        written = [field.name for field in ModelConfig._meta.fields if not field.primary_key]
        if former and (former.base_url, former.model_id) != (config.base_url, config.model_id):
            new = ModelConfig()
            for name in LEARNED:
                setattr(config, name, getattr(new, name))
        elif former:  # answers write these columns meanwhile, so the loaded values may be stale
            written = [name for name in written if name not in LEARNED]
        if config.is_default:
            config.enabled = True
            # Do this first: a constraint allows only one default.
            ModelConfig.objects.filter(is_default=True).exclude(pk=config.pk).update(is_default=False)
        if former and (former.context_size, former.max_output_tokens) != (
            config.context_size,
            config.max_output_tokens,
        ):  # the operator's sizes override the window that the provider named
            config.named_window = {}
            written = [*written, "named_window"]
        config.save(update_fields=written if former else None)
        appeared = config.enabled and not (former and former.enabled)
        is_real = config.kind != ModelConfig.Kind.DEMO
        if replaces_demo and appeared and is_real and not has_real_default():
            _set_default(config)
    return config


def store_detected_sizes(
    *, config: ModelConfig, context_size: int | None = None, max_output_tokens: int | None = None
) -> None:
    """Store sizes that a provider named in a model list or an error. None means that it named none."""
    detected = {
        "detected_context_size": context_size,
        "detected_max_output_tokens": max_output_tokens,
    }
    values = {field: value for field, value in detected.items() if value is not None}
    if values:
        # The row may have got another endpoint during the request.
        ModelConfig.objects.filter(pk=config.pk, model_id=config.model_id, base_url=config.base_url).update(
            **values
        )


def make_default(*, config: ModelConfig) -> None:
    """Make new conversations begin with this model."""
    with transaction.atomic():
        _lock_models()
        _set_default(config)


def note_named_window(
    *, config: ModelConfig, conversation_id: UUID, tokens: int, named_by: str, now: datetime
) -> None:
    """Store the window that a provider named when it refused a request of this conversation.

    `named_by` is the refused run or compaction.
    """
    named, key = NamedWindow(tokens, now, named_by=named_by), str(config.pk)
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
        row = ModelConfig.objects.select_for_update().filter(pk=config.pk).first()
        if row is None:
            return
        if conversation is not None:
            conversation.named_windows = {**conversation.named_windows, key: named.write()}
            conversation.save(update_fields=["named_windows"])
        known = NamedWindow.read(row.named_window)
        after = known.named_again(named) if known else named
        ModelConfig.objects.filter(pk=row.pk).update(named_window=after.write())
    # Log once, when the window begins to apply to all conversations.
    if after.count == CONFIRMATIONS_FOR_ALL:
        log.warning(
            "The provider of %s reported a window of %s tokens again; it is used until %s.",
            row.name,
            tokens,
            now + BELIEVED_FOR,
        )


def record_test(*, config: ModelConfig, result: str) -> None:
    """Store the result of the Test, in sentences."""
    ModelConfig.objects.filter(pk=config.pk).update(test_result=result, tested_at=clock.now())


def ensure_first_model() -> None:
    """Create the Demo row and update the rows of the environment, at every start.

    Address, model and key of these rows come from the environment, everything else from the operator. If its variable
    is removed, a row becomes the operator's.
    """
    wanted = _environment()
    with transaction.atomic():
        # Create the Demo row first, because locking needs it.
        _ensure_demo()
        _lock_models()
        fast = _ensure_from_environment(Origin.ENVIRONMENT_FAST, wanted, wanted.fast_model)
        main = _ensure_from_environment(Origin.ENVIRONMENT, wanted, wanted.model)
        # Keep the operator's choice.
        if main and fast and main.fast_model_id is None:
            main.fast_model = fast
            main.save(update_fields=["fast_model"])


def offer_models(*, origin: ModelConfig.Origin, base_url: str, sizes: dict[str, int]) -> list[ModelConfig]:
    """Store models found at an address, with their windows (0 = unknown), and return their rows.

    Of known ones only the detected window changes. The first new one replaces the Demo model as the default.
    """
    offered = []
    with transaction.atomic():
        # Lock before reading the rows, because another process may find the same models.
        _lock_models()
        for model_id, context_size in sizes.items():
            known = ModelConfig.objects.filter(base_url=base_url, model_id=model_id).first()
            if known is None:
                known = ModelConfig(
                    name=free_name(model_id),
                    model_id=model_id,
                    base_url=base_url,
                    origin=origin,
                    detected_context_size=context_size,
                )
                save_model_config(config=known)
            elif context_size:
                store_detected_sizes(config=known, context_size=context_size)
            offered.append(known)
    return offered


def _environment() -> EnvironmentModels:
    """Return the models of the environment. A key alone means OpenAI; a model needs an address or a key."""
    base_url, api_key = settings.OPENAI_BASE_URL.rstrip("/"), settings.OPENAI_API_KEY
    model, fast_model = settings.LLM_MODEL, settings.FAST_LLM_MODEL
    if not model and api_key and not base_url:
        model, fast_model = OPENAI_FIRST_MODEL, fast_model or OPENAI_FIRST_FAST_MODEL
    if not model or not (base_url or api_key):
        return EnvironmentModels()
    return EnvironmentModels(base_url, api_key, model, fast_model)


def _lock_models() -> None:
    """Lock the Demo row to serialise changes of the default, and starting processes."""
    ModelConfig.objects.select_for_update().filter(origin=Origin.BUILT_IN).first()


def _ensure_demo() -> None:
    demo, is_new = ModelConfig.objects.get_or_create(
        origin=Origin.BUILT_IN,
        defaults={"name": free_name(DEMO_NAME), "kind": ModelConfig.Kind.DEMO, "model_id": "demo"},
    )
    if is_new and not ModelConfig.objects.filter(is_default=True).exists():
        _set_default(demo)


def _ensure_from_environment(origin: Origin, wanted: EnvironmentModels, model_id: str) -> ModelConfig | None:
    rows = ModelConfig.objects.filter(origin=origin)
    # A fast model that is the model itself needs no row of its own.
    if not model_id or (origin == Origin.ENVIRONMENT_FAST and model_id == wanted.model):
        rows.update(origin=Origin.OPERATOR)
        return None
    row = rows.first() or _adopt_or_create(origin, wanted.base_url, model_id)
    _follow_environment(row, wanted, model_id)
    return row


def _adopt_or_create(origin: Origin, base_url: str, model_id: str) -> ModelConfig:
    # An operator may have entered the same model before.
    row = ModelConfig.objects.filter(
        base_url=base_url, model_id=model_id, kind=ModelConfig.Kind.OPENAI
    ).first()
    row = row or ModelConfig(name=free_name(model_id), model_id=model_id, base_url=base_url)
    row.origin = origin
    row.is_default = row.is_default or origin == Origin.ENVIRONMENT
    return row


def _follow_environment(row: ModelConfig, wanted: EnvironmentModels, model_id: str) -> None:
    # Keep a name that an operator entered.
    if row.name == row.model_id != model_id:
        row.name = free_name(model_id)
    row.base_url, row.model_id = wanted.base_url, model_id
    save_model_config(config=row, api_key=wanted.api_key if key_differs(row, wanted.api_key) else None)


def key_differs(row: ModelConfig, api_key: str) -> bool:
    """Return whether storing this key would change the stored one."""
    try:
        return encryption.decrypt(row.api_key_encrypted) != api_key.strip()
    except encryption.SecretUnreadable:
        return True  # SECRET_KEY has changed, so the key has to be encrypted again


def _set_default(config: ModelConfig) -> None:
    ModelConfig.objects.filter(is_default=True).exclude(pk=config.pk).update(is_default=False)
    config.is_default = config.enabled = True
    config.save(update_fields=["is_default", "enabled"])


NUMBER_CHARS = len(" (9999)")


def free_name(wanted: str) -> str:
    """Return `wanted`, with a number if it is taken, truncated to the length of the column."""
    longest = ModelConfig._meta.get_field("name").max_length or len(wanted)
    beginning = wanted[: longest - NUMBER_CHARS]
    taken = set(ModelConfig.objects.filter(name__startswith=beginning).values_list("name", flat=True))
    numbers = (f" ({number})" for number in range(2, len(taken) + 2))
    names = (wanted[: longest - len(number)] + number for number in ("", *numbers))
    return next(name for name in names if name not in taken)


# --- The ledger --------------------------------------------------------------------------------------


def record_calls(run: Run, calls: Sequence[CallUsage], step_count: int | None = None) -> list[RunStep]:
    """Store calls of a run, and return the steps they add to its trace. `step_count` is the number so far, if known."""
    insert_rows(
        [
            _usage_row(call, user_id=run.user_id, conversation_id=run.conversation_id, run=run)
            for call in calls
        ]
    )
    traced = [(call, call.times) for call in calls if call.times is not None]
    if traced and step_count is None:
        step_count = RunStep.objects.filter(run=run).count()
    first = (step_count or 0) + 1
    steps = [_step_row(run, n, call, times) for n, (call, times) in enumerate(traced, start=first)]
    insert_rows(steps)
    return steps


SUMMED_BACK = timedelta(days=30)
COMMITTED_WITHIN = timedelta(minutes=10)
"""After this time, no more rows of a past hour can appear."""


def sum_up_usage(*, now: datetime) -> None:
    """Store the sums of past hours that have none yet. Idempotent."""
    until = (now - COMMITTED_WITHIN).replace(minute=0, second=0, microsecond=0)
    newest = UsageHour.objects.order_by("hour").last()
    since = newest.hour + timedelta(hours=1) if newest else until - SUMMED_BACK
    UsageHour.objects.bulk_create(usage_hours(since, until), ignore_conflicts=True)


def assign_background_calls(run: Run) -> None:
    """Assign the background calls since the conversation's last answer to this run."""
    Usage.objects.filter(conversation_id=run.conversation_id, run=None).update(run=run)


def record_background_calls(user: User, conversation_id: Any, calls: Sequence[CallUsage]) -> None:
    """Store calls outside a run; the next answer of the conversation shows them. Idempotent."""
    rows = [_usage_row(call, user_id=user.pk, conversation_id=conversation_id, run=None) for call in calls]
    # A write whose response was lost is retried with the same ids.
    Usage.objects.bulk_create(rows, ignore_conflicts=True)


@transaction.atomic
def record_made_calls(*, user_id: UUID, conversation_id: UUID | None, calls: Sequence[CallUsage]) -> None:
    """Store calls outside a run, whatever becomes of the work that they were made for. If the conversation is deleted
    meanwhile, store them without it; if the user is deleted, store nothing. Idempotent."""
    user = User.objects.filter(pk=user_id).first()
    if user is None or not calls:
        return
    # Lock the conversation, so that its deletion comes before this or finds these rows.
    homes = Conversation.objects.select_for_update().filter(user=user)
    home = homes.filter(pk=conversation_id).first() if conversation_id is not None else None
    record_background_calls(user, home.pk if home else None, calls)


def _usage_row(call: CallUsage, *, user_id: Any, conversation_id: Any, run: Run | None) -> Usage:
    return Usage(
        id=call.id,
        user_id=user_id,
        conversation_id=conversation_id,
        run=run,
        model=call.model,
        model_name=call.model.name if call.model else "",
        purpose=call.purpose,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
        cost=call.cost,
        exact=call.exact,
        kept_out_tokens=call.kept_out_tokens,
        compaction_saved=call.compaction_saved,
        cache_saved=call.cache_saved,
    )


def _step_row(run: Run, n: int, call: CallUsage, times: CallTimes) -> RunStep:
    return RunStep(
        run=run,
        n=n,
        purpose=call.purpose,
        model_name=call.model.name if call.model else "",
        request_n=times.request_n,
        started_at=times.started_at,
        first_token_ms=times.first_token_ms,
        duration_ms=times.duration_ms,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
        exact=call.exact,
        plan_step=call.plan_step,
    )
