"""Degrees from people: files of judgements and labels, read, kept and placed in a collection."""
