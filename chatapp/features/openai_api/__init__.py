"""The OpenAI-compatible API below /v1: one model call that stores nothing, or a turn of a stored conversation."""
