"""Users, sign-in, tokens, invitations, rate limits, export and deletion of an account."""
