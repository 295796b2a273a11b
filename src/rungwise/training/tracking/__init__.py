"""What a run reports, and where its numbers are written."""
