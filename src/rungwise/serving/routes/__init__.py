"""Routes of the server."""
