"""Text functions that take linear time, and the order and names in which people write text."""
