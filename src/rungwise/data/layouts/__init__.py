"""The layouts in which pictures and captions lie on disk, one reader each."""
