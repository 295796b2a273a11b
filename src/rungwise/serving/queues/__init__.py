"""Queues in which costly work waits for its turn."""
