"""Captions as scene graphs: objects, their attributes, and relations between them."""
