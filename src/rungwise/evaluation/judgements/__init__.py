"""What counts as right besides the annotation: people's judgements and shared class labels."""
