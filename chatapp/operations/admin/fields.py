"""Lists and mappings in the forms of operators: written in YAML, of which JSON is a part."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.yaml_text import YamlError, read_yaml, write_yaml


class YamlField(forms.Field):
    """For a column of JSON. While something is wrong with it, it shows what was entered, as it was entered."""

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        """`encoder` and `decoder` are what the column gives its fields; YAML has its own."""
        widget = forms.Textarea(attrs={"rows": 8, "class": "vLargeTextField"})
        # A column with a default would have the form carry what it showed; the row knows it.
        super().__init__(**{"widget": widget, **options, "show_hidden_initial": False})

    def prepare_value(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        return write_yaml(value) if value else ""

    def to_python(self, value: str | None) -> Any:
        """None where nothing is entered."""
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
