"""Sources that read what was computed before."""
