"""Pictures: opened at one door, decoded, and compared."""
