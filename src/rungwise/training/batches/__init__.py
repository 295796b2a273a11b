"""Which pairs meet in a batch, and how relevant they are to each other."""
