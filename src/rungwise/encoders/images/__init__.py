"""Image sides, and the way of a picture from its file to a row."""
