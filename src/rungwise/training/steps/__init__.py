"""Steps from one batch to new weights: gradients, optimizer, learning rates."""
