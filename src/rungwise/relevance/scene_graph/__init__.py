"""Degrees from scene graphs: which facts of one caption others state too."""
