"""What the server keeps between requests: the index, pictures, small copies."""
