"""Captions as scene graphs: what is there, what it is like, and how things stand to each other."""
