"""A form field for lists and mappings in YAML, which includes JSON, and limits for form fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MaxValueValidator
from django.utils.translation import gettext

from agents.presets.yaml_text import YamlError, read_yaml, write_yaml
from chatapp.operations.translations import translate_sentence


def bound_fields(form: forms.BaseForm, **most: float) -> None:
    """Apply the API's limits to form fields: the largest numbers, the longest texts."""
    for name, limit in most.items():
        field = form.fields[name]
        if isinstance(field, forms.CharField):
            field.max_length = int(limit)
            field.validators.append(MaxLengthValidator(int(limit)))
        else:
            assert isinstance(field, forms.IntegerField)  # also the base of other number fields
            field.max_value = int(limit)
            field.validators.append(MaxValueValidator(limit))
        # Django set these attributes when the field was created, without the limit.
        field.widget.attrs.update(field.widget_attrs(field.widget))


@dataclass(frozen=True, slots=True)
class Part:
    """A form control next to a YAML field."""

    name: str
    kind: Literal["number", "text", "flag", "choice"]
    what: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guide:
    """A form and examples next to a YAML field, which write into the field.

    `fields`: each part is a line of a mapping. `hook` and `hooks`: the parts belong to one hook.
    """

    shape: Literal["fields", "hook", "hooks"]
    parts: tuple[Part, ...]
    examples: Mapping[str, str]
    """YAML by title. The YAML of a hook has no list dash."""

    def as_json(self) -> str:
        """Return the guide and the texts of its form as JSON, in the language of the page."""
        return json.dumps(
            {
                "shape": self.shape,
                "parts": [
                    {**asdict(part), "what": translate_sentence(gettext(part.what))} for part in self.parts
                ],
                "examples": [
                    {"title": gettext(title), "yaml": yaml.strip()} for title, yaml in self.examples.items()
                ],
                "words": {
                    "title": gettext("Form and examples"),
                    "examples": gettext("Examples: "),
                    "unset": gettext("as it is"),
                    "default": gettext("as it is: {value}"),
                    "write": gettext("Write it as YAML"),
                },
            }
        )


class YamlArea(forms.Textarea):
    class Media:
        js = ("app/admin-yaml.js",)

    def __init__(self, attrs: dict[str, Any], guide: Guide) -> None:
        super().__init__(attrs)
        self.guide = guide

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        """Add the guide when the field is shown, because forms are created before the language is known."""
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return {**attrs, "data-yaml": self.guide.as_json()}


class YamlField(forms.Field):
    """A field for a JSON column. It shows an invalid text as it was entered."""

    guide: ClassVar[Guide | None] = None

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        """Ignore `encoder` and `decoder`, which a JSON column passes to its fields."""
        attrs = {"rows": 8, "class": "vLargeTextField"}
        widget = YamlArea(attrs, self.guide) if self.guide else forms.Textarea(attrs)
        # Otherwise a column with a default adds its initial value to the form, but the row has it.
        super().__init__(**{"widget": widget, **options, "show_hidden_initial": False})

    def prepare_value(self, value: Any) -> str:
        # Show invalid text as it was entered, so that it can be corrected.
        if isinstance(value, str):
            return value
        return write_yaml(value) if value else ""

    def to_python(self, value: str | None) -> Any:
        """Return None for an empty text."""
        if not value or not value.strip():
            return None
        try:
            return read_yaml(value)
        except YamlError as error:
            problem = {"problem": translate_sentence(str(error))}
            raise ValidationError(gettext("This cannot be read: %(problem)s.") % problem) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            # Compare values, because the same content in another notation is no change.
            return (self.to_python(data) or None) != (initial or None)
        except ValidationError:
            return True
