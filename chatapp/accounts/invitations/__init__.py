"""Invitations to sign up: created by operators, sent by mail or as a link, used once."""
