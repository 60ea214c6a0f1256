"""The form for settings that need no restart, and the list of those that do."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from chatapp.operations.configuration import environment
from chatapp.operations.configuration.changeable_settings import (
    MAIL,
    ShownSetting,
    change_setting,
    check_setting,
    shown_setting,
)
from chatapp.operations.configuration.mail_settings import EXAMPLE
from chatapp.operations.errors import InvalidInput
from chatapp.operations.translations import translate_sentence

SIGNUPS = [
    ("closed", _("closed: operators add users")),
    ("invite", _("invite: with an operator's link")),
    ("open", _("open: anybody may sign up")),
]
GROUPS: dict[str, dict[str, str]] = {
    gettext_noop("Retention"): {
        "RETENTION_DAYS": gettext_noop(
            "Days without a message after which a chat goes to the trash; 0 = never. A shorter time is"
            " applied within the hour."
        ),
        "TRASH_DAYS": gettext_noop("Days in which what was deleted can be restored; 0 = not at all."),
    },
    gettext_noop("Sign-up"): {"SIGNUP": gettext_noop("Who may make an account.")},
    gettext_noop("Mail"): {
        MAIL: gettext_noop(
            "For password resets and confirmations, such as %(example)s. Empty keeps what is set; “none” removes it."
        ),
    },
    gettext_noop("Tools"): {
        "DEFAULT_TOOLS": gettext_noop(
            "What answers may use where no agent says otherwise; “none” for nothing."
        ),
        "HTTP_FETCH_HOSTS": gettext_noop(
            "Hosts that http_fetch may access: docs.python.org, *.python.org, or * for all public ones."
        ),
        "HTTP_FETCH_OWN_HOSTS": gettext_noop("The same on your own network: wiki.example:8080."),
        "MAX_OWN_AGENTS": gettext_noop("Agents that a user may make."),
    },
}
EXAMPLES = {"example": EXAMPLE}
NO_MAIL = "none"
MAX_CHARS = 4_000


class SettingsForm(forms.Form):
    """A form with a field for each setting that the environment does not fix, in the environment's format."""

    def __init__(self, *args: Any, actor_id: UUID | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.actor_id = actor_id
        self.shown = {name: shown_setting(name) for settings_ in GROUPS.values() for name in settings_}
        for name, setting in self.shown.items():
            if not setting.is_fixed:
                self.fields[name] = _field_of(setting)

    def groups(self) -> list[tuple[str, list[tuple[ShownSetting, str, str, Any]]]]:
        """Return (title, [(setting, description, source, field or None)]) for each group, as shown on the page."""
        return [
            (
                gettext(title),
                [
                    (
                        self.shown[name],
                        gettext(what) % EXAMPLES,
                        _describe_source(self.shown[name]),
                        self[name] if name in self.fields else None,
                    )
                    for name, what in group.items()
                ],
            )
            for title, group in GROUPS.items()
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in self.changed_data:
            if name in cleaned:
                try:
                    check_setting(name, _raw(name, cleaned[name]))
                except InvalidInput as error:
                    self.add_error(name, _translate_problem(name, error.message))
        return cleaned

    def save(self) -> list[str]:
        """Store the changed settings and return their names."""
        for name in self.changed_data:
            change_setting(name=name, raw=_raw(name, self.cleaned_data[name]), actor_id=self.actor_id)
        return self.changed_data


def _translate_problem(name: str, problem: str) -> str:
    """Return the problem, which begins with the setting's name, in the language of the page."""
    return f"{name} {translate_sentence(problem.removeprefix(f'{name} '))}"


def _describe_source(setting: ShownSetting) -> str:
    source = translate_sentence(setting.source)
    if setting.is_fixed:
        return gettext("Fixed by %(source)s.") % {"source": source}
    if setting.name == MAIL:
        value = translate_sentence(setting.raw) if setting.raw else gettext("No mail is sent")
        return gettext("%(value)s: %(source)s.") % {"value": value, "source": source}
    told = gettext("%(source)s.") % {"source": capfirst(source)}
    again = gettext("Empty: the default again.") if "changed" in setting.source else ""
    return f"{told} {again}".strip()


def _field_of(setting: ShownSetting) -> forms.Field:
    """Return the field of a setting. Its hidden initial value shows whether the operator changed it, so that an
    unchanged field does not overwrite another operator's change."""
    described = {"aria-describedby": f"about_{setting.name}"}
    if setting.name == "SIGNUP":
        return forms.ChoiceField(
            initial=setting.raw,
            choices=SIGNUPS,
            required=False,
            widget=forms.Select(attrs=described),
            show_hidden_initial=True,
        )
    # Do not show it, because it contains a password.
    initial = "" if setting.name == MAIL else setting.raw
    attrs = {**described, "autocomplete": "off", "spellcheck": "false"}
    is_long = setting.name == "DEFAULT_TOOLS"
    widget = forms.Textarea(attrs={**attrs, "rows": 3}) if is_long else forms.TextInput(attrs=attrs)
    return forms.CharField(
        initial=initial, required=False, max_length=MAX_CHARS, widget=widget, show_hidden_initial=True
    )


def _raw(name: str, entered: str) -> str:
    # An empty field keeps the value, because the form does not show it. Only the word removes it.
    return "" if name == MAIL and entered.lower() == NO_MAIL else entered


def other_settings() -> list[ShownSetting]:
    """Return the settings that need a restart to change, sorted by name."""
    return [
        ShownSetting(
            name,
            translate_sentence(environment.without_password(value)),
            translate_sentence(environment.source_of(name) or "the default"),
            is_fixed=True,
        )
        for name, value in sorted(environment.shown.items())
        if name not in settings.CHANGEABLE and name != "ENV_FILE"
    ]
