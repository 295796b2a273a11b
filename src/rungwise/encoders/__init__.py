"""Image side and text side, each from the user's data to vectors."""
