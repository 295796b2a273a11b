"""Verification and export of an index."""
