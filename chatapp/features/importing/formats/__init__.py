"""One module per source, which recognises its conversations and reads them one at a time. `importer.FORMATS` lists the
modules; the first that recognises a conversation reads it."""
