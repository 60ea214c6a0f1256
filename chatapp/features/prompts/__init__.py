"""The prompt library: a user's own texts, and those that operators offer to everybody."""
