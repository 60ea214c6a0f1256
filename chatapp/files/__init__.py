"""Uploads, documents, images, what was too large for a context, and where bytes lie."""
