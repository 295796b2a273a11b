"""Every block of code of the documents runs, and what it printed is kept in ``docs/outputs``."""
