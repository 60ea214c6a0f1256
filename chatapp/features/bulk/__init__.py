"""Several conversations at once: archive, move, to the trash and back, and one file of all of them."""
