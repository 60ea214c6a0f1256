"""One module for each source: each recognises its conversations and reads one at a time. `importer.FORMATS` names them,
and the first that recognises a conversation reads it."""
