"""One module per source: its `NAME`, `matches` (whether a conversation is of this source) and `read`. The first of
`importer.FORMATS` that matches reads the conversation."""
