"""What is known of languages without pictures: words, their vectors, and published models of sentences."""
