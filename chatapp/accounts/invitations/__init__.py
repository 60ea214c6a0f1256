"""Invitations to sign up: made by operators, mailed or handed over, used once."""
