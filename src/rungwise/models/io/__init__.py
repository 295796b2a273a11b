"""Models as folders: written, sealed, read back, and described on a card."""
