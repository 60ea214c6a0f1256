"""Decides what to keep: pure functions over messages. No I/O, no clock, no settings."""
