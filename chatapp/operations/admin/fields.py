"""A form field for lists and mappings in YAML, which includes JSON, and bounds for the fields of forms."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MaxValueValidator

from agents.yaml_text import YamlError, read_yaml, write_yaml


def bound_fields(form: forms.BaseForm, **most: float) -> None:
    """Refuse in the form what the API refuses: larger numbers, longer texts."""
    for name, limit in most.items():
        field = form.fields[name]
        if isinstance(field, forms.CharField):
            field.max_length = int(limit)
            field.validators.append(MaxLengthValidator(int(limit)))
        else:
            assert isinstance(field, forms.IntegerField)  # so are those for other numbers
            field.max_value = int(limit)
            field.validators.append(MaxValueValidator(limit))
        field.widget.attrs.update(field.widget_attrs(field.widget))


class YamlField(forms.Field):
    """A field for a JSON column. While its text is not valid it shows the text as it was entered."""

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        """Ignore `encoder` and `decoder`, which a JSON column passes to its fields."""
        widget = forms.Textarea(attrs={"rows": 8, "class": "vLargeTextField"})
        # Without this a column with a default adds its initial value to the form; the row has it.
        super().__init__(**{"widget": widget, **options, "show_hidden_initial": False})

    def prepare_value(self, value: Any) -> str:
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
            raise ValidationError(f"This cannot be read: {error}.") from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return (self.to_python(data) or None) != (initial or None)
        except ValidationError:
            return True
