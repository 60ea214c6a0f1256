"""Memory that outlives a conversation: daily entries, the profile, pauses, shared memories."""
