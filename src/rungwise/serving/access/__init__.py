"""Who is let in, and how much of the server one may hold."""
