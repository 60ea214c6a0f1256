"""Chinese as the page writes it."""
