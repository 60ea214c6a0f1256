"""Compactions: plans, queues, writes, edits, undoes and previews the summaries of checkpoints."""
