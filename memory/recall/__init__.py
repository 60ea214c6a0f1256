"""What a question asks for, and how well a stored text answers it."""
