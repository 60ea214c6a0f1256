"""What of a conversation a model call sees: budget, policy, loading, cutting."""
