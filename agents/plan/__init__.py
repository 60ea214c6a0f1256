"""Plan mode: a question taken apart into steps that depend on each other, carried out side by side."""
