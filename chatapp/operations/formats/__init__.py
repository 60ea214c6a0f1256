"""How numbers are written, where Django says it otherwise than the page."""
