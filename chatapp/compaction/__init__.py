"""Checkpoints: planned, summarised by a worker, edited, undone, previewed."""
