"""What is measured: similarities, embeddings and ranked lists of any model, read and checked."""
