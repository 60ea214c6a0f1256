"""What leaves a context is summarised: when, what, and by whom."""
