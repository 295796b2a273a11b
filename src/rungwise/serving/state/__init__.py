"""State that the server keeps between requests: the index, pictures, thumbnails."""
