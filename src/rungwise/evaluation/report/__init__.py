"""A result as one HTML file that needs no other."""
