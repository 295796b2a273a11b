"""Queries: words, pictures and vectors, each with a weight, and the text that people type."""
