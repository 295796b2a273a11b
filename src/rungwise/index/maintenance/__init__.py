"""An index looked through, and written out for others."""
