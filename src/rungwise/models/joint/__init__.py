"""Joint embeddings: two encoders with a trained head each, new, begun from others, or imported."""
