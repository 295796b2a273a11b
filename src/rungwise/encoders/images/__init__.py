"""Image sides: from a picture's file to a row."""
