"""The index of all that was said: terms, vectors, ranking."""
