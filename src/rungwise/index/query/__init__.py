"""What is searched for: words, pictures and vectors, each with a weight."""
