"""Everything that a run depends on, as typed data."""
