"""Batches: which pairs meet, and how relevant they are to each other."""
