"""Degrees from vectors and models: of captions, of pairs of captions, of pictures."""
