"""The generated world: scenes, their captions, their pictures, and their exact relevance."""
