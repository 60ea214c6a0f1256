"""What the built-in tools see of the world, always with the rights of the user whose run it is."""
