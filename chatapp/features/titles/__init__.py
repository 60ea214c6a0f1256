"""Titles that the fast model writes for new conversations after the first answer."""
