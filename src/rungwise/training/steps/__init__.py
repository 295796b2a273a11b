"""One batch to new weights: gradients, optimizer, rates."""
