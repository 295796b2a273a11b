"""The exact store: memory-mapped files, every row compared."""
