"""Output for people: progress, lines of a terminal, the frame of a page."""
