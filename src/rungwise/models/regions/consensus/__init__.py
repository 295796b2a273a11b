"""CVSE: concepts of a collection beside the regions of a picture."""
