"""The search index, its ranking, and what is found for users and models."""
