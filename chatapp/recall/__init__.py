"""The search index and its ranking: search for users, recall for models."""
