"""Reports of a run, and where its numbers are written."""
