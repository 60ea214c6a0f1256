"""What older versions accepted is brought within the bounds that hold now (`memory.bounds`)."""

import django.core.validators
from django.db import migrations, models

MAX_RETENTION_DAYS = 36_500


MOST_OF_POLICIES = {
    "context_size": 100_000_000,
    "max_tokens": 100_000_000,
    "max_output_tokens": 100_000_000,
    "output_reserved": 100_000_000,
    "system_reserve": 100_000_000,
    "max_input_tokens": 100_000_000,
    "agent_max_context_tokens": 100_000_000,
    "tool_result_limit": 100_000_000,
    "recall_budget": 100_000_000,
    "old_result_char_limit": 100_000_000,
    "message_char_limit": 100_000_000,
    "summary_temperature": 2.0,
    "summary_timeout_s": 86_400.0,
}
MOST_OF_HOOKS = {
    "count": 2**31 - 1,
    "threshold": 2**63 - 1,
    "keep_recent": 10_000,
    "summary_max_tokens": 32_000,
}


def bring_within_bounds(apps, schema_editor):
    periods = apps.get_model("chatapp", "GroupRetention").objects
    periods.filter(days__gt=MAX_RETENTION_DAYS).update(days=MAX_RETENTION_DAYS)
    for name in ("Conversation", "Agent", "ModelConfig"):
        rows = apps.get_model("chatapp", name).objects
        for row_id, policy in rows.exclude(context_policy={}).values_list("pk", "context_policy"):
            if (bounded := _bounded(policy, MOST_OF_POLICIES)) != policy:
                rows.filter(pk=row_id).update(context_policy=bounded)
    for name in ("Conversation", "Agent"):
        rows = apps.get_model("chatapp", name).objects
        for row_id, hooks in rows.exclude(hooks=[]).values_list("pk", "hooks"):
            if (bounded := [_bounded_hook(hook) for hook in hooks or []]) != (hooks or []):
                rows.filter(pk=row_id).update(hooks=bounded)


def _bounded(values, most):
    return {
        name: most[name] if name in most and isinstance(value, int | float) and value > most[name] else value
        for name, value in values.items()
    }


def _bounded_hook(hook):
    parts = {name: _bounded(hook[name], MOST_OF_HOOKS) for name in ("condition", "action") if name in hook}
    return {**hook, **parts}


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0034_versions_of_analysis"),
    ]

    operations = [
        migrations.RunPython(bring_within_bounds, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="groupretention",
            name="days",
            field=models.PositiveIntegerField(
                help_text="Conversations nobody wrote to for so many days are cleaned up; 0 = never.",
                validators=[django.core.validators.MaxValueValidator(MAX_RETENTION_DAYS)],
            ),
        ),
        migrations.AddConstraint(
            model_name="groupretention",
            constraint=models.CheckConstraint(
                condition=models.Q(days__gte=0, days__lte=MAX_RETENTION_DAYS),
                name="groupretention_days_in_range",
            ),
        ),
    ]
