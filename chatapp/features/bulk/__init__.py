"""Several conversations at once: archive, move, delete, restore, and export to one file."""
