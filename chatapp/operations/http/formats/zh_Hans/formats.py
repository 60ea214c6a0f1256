"""Groups thousands, as `Intl.NumberFormat` does. Django would not group digits."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
