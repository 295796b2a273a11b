"""Language without pictures: words, their vectors, and published models of sentences."""
