"""Models of open_clip: their folders, names, settings and texts."""
