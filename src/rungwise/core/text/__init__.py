"""Text in linear time, and the order and names in which people write it."""
