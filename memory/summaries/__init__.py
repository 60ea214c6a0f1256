"""What stands for messages that left the context: how a summary is requested, read, and shown to the model."""
