"""The page in which a diagram of an answer is drawn, apart from all others."""
