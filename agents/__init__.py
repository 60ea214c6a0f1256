"""Run models and tools: the loop that turns a context into an answer. No Django, no database."""
