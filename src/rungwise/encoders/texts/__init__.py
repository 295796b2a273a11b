"""Text sides, and the way of a text to a vector."""
