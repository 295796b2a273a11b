"""Bringing an index up to date with a collection."""
