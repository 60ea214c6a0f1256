"""The loop of an answer: model, tools, hooks."""
