"""Runs over several processes."""
