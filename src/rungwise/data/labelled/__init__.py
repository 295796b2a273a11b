"""Features with class labels, as work on cross-modal retrieval publishes them."""
