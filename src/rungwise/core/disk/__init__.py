"""Files and folders that appear as a whole or not at all, sealed, locked, and on the disk when they are said to be."""
