"""Model calls that nobody waits for: summaries and titles."""
