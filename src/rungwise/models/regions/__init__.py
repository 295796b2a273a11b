"""Models that compare the regions of a picture with the words of a text."""
