"""Vocabularies of text sides, and cutting texts into tokens."""
