"""The form of the settings that need no restart, and the list of those that do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings

from chatapp.operations import environment
from chatapp.operations.changeable_settings import (
    MAIL,
    ShownSetting,
    change_setting,
    check_setting,
    shown_setting,
)
from chatapp.operations.errors import InvalidInput
from chatapp.operations.mail_settings import EXAMPLE

SIGNUPS = [
    ("closed", "closed: operators add users"),
    ("invite", "invite: with an operator's link"),
    ("open", "open: anybody may sign up"),
]
GROUPS: dict[str, dict[str, str]] = {
    "Retention": {
        "RETENTION_DAYS": "Days without a message after which a chat goes to the trash; 0 = never. A shorter time is"
        " applied within the hour.",
        "TRASH_DAYS": "Days in which what was deleted can be restored; 0 = not at all.",
    },
    "Sign-up": {"SIGNUP": "Who may make an account."},
    "Mail": {
        MAIL: f"For password resets and confirmations, such as {EXAMPLE}. Empty keeps what is set; “none” removes it.",
    },
    "Tools": {
        "DEFAULT_TOOLS": "What answers may use where no agent says otherwise; “none” for nothing.",
        "HTTP_FETCH_HOSTS": "Hosts that http_fetch may ask: docs.python.org, *.python.org, or * for all public ones.",
        "HTTP_FETCH_OWN_HOSTS": "The same on your own network: wiki.example:8080.",
        "MAX_OWN_AGENTS": "Agents that a user may make.",
    },
}
NO_MAIL = "none"
MAX_CHARS = 4_000


class SettingsForm(forms.Form):
    """A field for each setting that the environment does not fix, written as it would be there."""

    def __init__(self, *args: Any, actor_id: UUID | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.actor_id = actor_id
        self.shown = {name: shown_setting(name) for settings_ in GROUPS.values() for name in settings_}
        for name, setting in self.shown.items():
            if not setting.is_fixed:
                self.fields[name] = _field_of(setting)

    def groups(self) -> list[tuple[str, list[tuple[ShownSetting, str, Any]]]]:
        """Return (title, [(setting, what it means, its field or None)]) as the page shows them."""
        return [
            (
                title,
                [
                    (self.shown[name], what, self[name] if name in self.fields else None)
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
                    self.add_error(name, error.message)
        return cleaned

    def save(self) -> list[str]:
        """Store what was changed and return its names."""
        for name in self.changed_data:
            change_setting(name=name, raw=_raw(name, self.cleaned_data[name]), actor_id=self.actor_id)
        return self.changed_data


def _field_of(setting: ShownSetting) -> forms.Field:
    described = {"aria-describedby": f"about_{setting.name}"}
    if setting.name == "SIGNUP":
        return forms.ChoiceField(
            initial=setting.raw, choices=SIGNUPS, required=False, widget=forms.Select(attrs=described)
        )
    initial = "" if setting.name == MAIL else setting.raw
    attrs = {**described, "autocomplete": "off", "spellcheck": "false"}
    is_long = setting.name == "DEFAULT_TOOLS"
    widget = forms.Textarea(attrs={**attrs, "rows": 3}) if is_long else forms.TextInput(attrs=attrs)
    return forms.CharField(initial=initial, required=False, max_length=MAX_CHARS, widget=widget)


def _raw(name: str, entered: str) -> str:
    return "" if name == MAIL and entered.lower() == NO_MAIL else entered


@dataclass(frozen=True, slots=True)
class OtherSetting:
    name: str
    value: str
    source: str


def other_settings() -> list[OtherSetting]:
    """Return the settings that only a restart changes, in the order of their names."""
    return [
        OtherSetting(name, environment.without_password(value), environment.source_of(name) or "the default")
        for name, value in sorted(environment.shown.items())
        if name not in settings.CHANGEABLE and name != "ENV_FILE"
    ]
