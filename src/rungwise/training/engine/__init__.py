"""The loop, and everything that it works with."""
