"""Formats of numbers that differ from Django's, to match the page."""
