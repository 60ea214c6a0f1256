"""One module for each source: each recognises its conversations and reads one at a time."""
