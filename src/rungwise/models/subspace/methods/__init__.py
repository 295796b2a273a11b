"""Fitted methods, one file each."""
