"""One answer, from the stored question to its last token."""
