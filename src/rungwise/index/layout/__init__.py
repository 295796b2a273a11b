"""Where an index lies, and which files and stores it has there."""
