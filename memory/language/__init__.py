"""Words and sentences in many languages."""
