"""What runs, seeds and tables are about: results kept in the folder of a run, and runs beside each other."""
