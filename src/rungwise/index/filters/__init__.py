"""Which rows may be found: conditions as values, as text, and on arrays."""
