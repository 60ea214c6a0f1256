"""Webhooks: what happens in a user's conversations is told to addresses of theirs, signed, until it was taken."""
