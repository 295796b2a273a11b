"""Files and folders that appear as a whole or not at all, with seals and locks, and synced before they are reported."""
