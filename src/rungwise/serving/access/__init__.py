"""Access control: who is let in, and how much of the server a client may hold."""
