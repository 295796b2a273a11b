"""Where relevance ends in the answers of an index."""
