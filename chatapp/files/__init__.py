"""Uploads, documents, images, offloaded results, and the store of their bytes."""
