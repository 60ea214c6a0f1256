"""Webhooks: send the events of a user's conversations to the user's addresses, signed, until they are accepted."""
