"""One answer from its question to its last token: context, loop, tools, plan, hooks, stream."""
