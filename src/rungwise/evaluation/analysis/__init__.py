"""What stands first in a model's rankings, and what is wrong with it."""
