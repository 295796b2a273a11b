"""Schemas of the server's answers."""
