"""Degrees from words: n-grams, their weights, and all pairs at once."""
