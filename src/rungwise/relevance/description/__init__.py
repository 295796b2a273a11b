"""A source shown to a person: a sample of its degrees, and examples between two thresholds."""
