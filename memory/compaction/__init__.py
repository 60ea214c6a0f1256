"""What leaves the context: which messages a summary covers, how it is requested, read and shown."""
