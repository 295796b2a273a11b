"""Text sides: from a text to a vector."""
