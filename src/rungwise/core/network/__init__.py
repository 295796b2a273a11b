"""Object stores, the model hub, and libraries that would report home."""
