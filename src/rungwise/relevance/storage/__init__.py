"""What is kept on disk: saved degrees, what sources computed of captions, scores of pairs."""
