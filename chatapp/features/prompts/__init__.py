"""The prompt library: texts that a user keeps, and those that operators offer to everybody."""
