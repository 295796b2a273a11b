"""What counts as right besides the annotation: human judgements and shared class labels."""
