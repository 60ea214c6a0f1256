"""Read-only snapshots of conversations, for everybody who has the link."""
