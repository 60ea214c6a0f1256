"""The admin page of deployment hooks, and the check of hooks that all forms share."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from agents.loop.hooks import HookLevel, read_hooks
from chatapp.agent_presets.actions import save_deployment_hook
from chatapp.agent_presets.hook_actions import check_declared
from chatapp.agent_presets.models import DeploymentHook
from chatapp.context.tools.registry import tool_names
from chatapp.operations.admin.fields import Guide, Part, YamlField
from chatapp.operations.errors import InvalidInput
from chatapp.operations.translations import translate_sentence
from memory.errors import PolicyError


def check_hook_field(declared: Any, level: HookLevel) -> list[dict[str, Any]]:
    """Return hooks in their stored form. Raise ValidationError, which names the field."""
    if not isinstance(declared, list):
        raise ValidationError(gettext("Enter a list of hooks."))
    try:
        return check_declared(read_hooks(declared, level), is_operator=True, tools=tool_names())
    except PolicyError as error:
        message = f"{error.field}: {error.problem}"
    except InvalidInput as error:
        message = error.message
    raise ValidationError(_in_plain_words(message, is_only_one=level == "deployment"))


_PLACE = re.compile(r"hooks\.(\d+)((?:\.\w+)*): (.*)", re.DOTALL)
_UNKNOWN_TYPE = re.compile(
    r"Input tag '(.*)' found using 'type' does not match any of the expected tags: (.*)"
)


def _in_plain_words(message: str, *, is_only_one: bool) -> str:
    """Return the message with the hook's number, from 1, and the path of the field in the form, which leaves out the
    type of a condition or an action."""
    if not (found := _PLACE.fullmatch(message)):
        return translate_sentence(message)
    steps = [step for step in found[2].split(".") if step and step not in _TYPES]
    if wrong := _UNKNOWN_TYPE.fullmatch(found[3]):
        problem = gettext("unknown type %(type)s; known types: %(types)s") % {
            "type": wrong[1],
            "types": wrong[2].replace("'", ""),
        }
    else:
        problem = translate_sentence(found[3])
    hook = "" if is_only_one else gettext("Hook %(number)s") % {"number": int(found[1]) + 1}
    return f"{', '.join(filter(None, [hook, ' › '.join(steps)]))}: {problem}"


EXAMPLE = """\
id: long
on: turn_end
condition: {type: message_count, threshold: 500}
action: {type: log, message: "{turn} turns, {tokens} tokens"}
cooldown: 3600
"""
PARTS = (
    Part(
        "id",
        "text",
        gettext_noop("Its name. A hook of the same name of an agent or a conversation replaces it there."),
    ),
    Part("on", "choice", gettext_noop("When the hook runs."), "turn_end", ("turn_start", "turn_end")),
    Part(
        "condition",
        "choice",
        gettext_noop("The condition."),
        "always",
        ("context_pressure", "turn_count", "tool_calls", "message_count", "always"),
    ),
    Part("threshold", "number", gettext_noop("For context_pressure a share such as 0.8, otherwise a count.")),
    Part(
        "action",
        "choice",
        gettext_noop("What it does."),
        "log",
        ("compact_context", "inject_message", "module_action", "log"),
    ),
    Part("text", "text", gettext_noop("The message, or the name of the tool that module_action calls.")),
    Part("cooldown", "number", gettext_noop("Seconds between two firings."), "0"),
)
EXAMPLES = {
    gettext_noop("Log long chats"): EXAMPLE,
    gettext_noop(
        "Compact early"
    ): "id: early\non: turn_end\ncondition: {type: context_pressure, threshold: 0.5}\n"
    "action: {type: compact_context, keep_recent: 10}",
    gettext_noop("Remind of the tone"): "id: tone\non: turn_start\ncondition: {type: turn_count, count: 20}\n"
    'action: {type: inject_message, message: "Keep to short, plain answers."}',
    gettext_noop(
        "Stop long tool loops"
    ): "id: tools\non: turn_end\ncondition: {type: tool_calls, threshold: 10}\n"
    'action: {type: inject_message, message: "Answer with what you have."}',
}


_TYPES = {choice for part in PARTS if part.name in ("condition", "action") for choice in part.choices}


class HookField(YamlField):
    guide = Guide("hook", PARTS, EXAMPLES)


class HooksField(YamlField):
    guide = Guide("hooks", PARTS, EXAMPLES)


def _with_example(told: Any, example: str) -> SafeString:
    return format_html("{}<pre>{}</pre>", told, example)


with_example: Any = lazy(_with_example, SafeString)
"""Lazy, so that the text is in the language of the page."""

HOOKS_HELP = with_example(
    _("A list of hooks, as YAML, such as"), "- " + EXAMPLE.strip().replace("\n", "\n  ")
)


class DeploymentHookForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = DeploymentHook
        fields = ("declaration", "enabled")
        field_classes: ClassVar = {"declaration": HookField}
        help_texts: ClassVar = {"declaration": with_example(_("One hook, as YAML, such as"), EXAMPLE.strip())}

    def clean_declaration(self) -> dict[str, Any]:
        [checked] = check_hook_field([self.cleaned_data["declaration"]], "deployment")
        others = DeploymentHook.objects.exclude(pk=self.instance.pk)
        if others.filter(hook_id=checked["id"]).exists():
            raise ValidationError(gettext("There is a hook %(id)s already.") % {"id": checked["id"]})
        return checked


@admin.register(DeploymentHook)
class DeploymentHookAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Hooks of every conversation. A hook of an agent or a conversation overrides the one with the same id."""

    form = DeploymentHookForm
    list_display = ("hook_id", "moment", "condition", "action", "enabled")
    list_filter = ("enabled",)
    search_fields = ("hook_id",)

    def save_model(self, request: HttpRequest, obj: DeploymentHook, form: Any, change: bool) -> None:
        save_deployment_hook(hook=obj)

    @admin.display(description=_("on"))
    def moment(self, hook: DeploymentHook) -> str:
        return _code(hook.declaration["on"])

    @admin.display(description=_("if"))
    def condition(self, hook: DeploymentHook) -> str:
        return _code(" ".join(str(value) for value in hook.declaration["condition"].values()))

    @admin.display(description=_("do"))
    def action(self, hook: DeploymentHook) -> str:
        return _code(hook.declaration["action"]["type"])


def _code(key: str) -> SafeString:
    return format_html("<code>{}</code>", key)
