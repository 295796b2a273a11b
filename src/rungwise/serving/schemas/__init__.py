"""What the server answers, as values."""
