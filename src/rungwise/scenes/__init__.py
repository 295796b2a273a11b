"""The generated world: scenes, what is said of them, how they are drawn, and their exact relevance."""
