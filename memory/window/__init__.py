"""What of a conversation a model call sees: policy, loading, cutting, and what the next summary covers."""
