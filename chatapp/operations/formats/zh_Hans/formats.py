"""Thousands apart, as `Intl.NumberFormat` has them; Django groups none."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
