"""Files of saved degrees, of numbers that sources computed of captions, and of pair scores."""
