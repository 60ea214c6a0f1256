"""What is remembered, replaced and never learned again: claims, daily entries, the profile, tombstones."""
