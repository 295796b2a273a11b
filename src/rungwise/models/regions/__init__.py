"""Models that look at the regions of a picture and the words of a text."""
