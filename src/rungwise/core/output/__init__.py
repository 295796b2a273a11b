"""What a person sees: progress, lines of a terminal, the frame of a page."""
