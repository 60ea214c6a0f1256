"""Ratings of answers: a thumb and an optional reason, counted for operators by model and agent."""
