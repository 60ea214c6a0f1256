"""Conversations and their messages: branches, pins, import, export, retention."""
