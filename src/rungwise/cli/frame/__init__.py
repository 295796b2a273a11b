"""What all commands share: the process, parsing, what is printed, models."""
