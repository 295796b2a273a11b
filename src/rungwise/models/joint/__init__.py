"""Joint embeddings (two encoders with a trained head each): new, started from others, or imported."""
