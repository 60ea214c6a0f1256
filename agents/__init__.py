"""Decides what to say: the loop that turns a context into an answer. No Django, no database."""
