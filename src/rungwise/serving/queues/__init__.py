"""Where costly work waits for its turn."""
