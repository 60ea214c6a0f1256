"""Read-only snapshots of conversations, for whoever has their link."""
