"""The request of one model call: its assembly, and how it is stored."""
