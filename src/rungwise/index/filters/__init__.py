"""Filters of the rows that may be found: conditions as values, as text, and on arrays."""
