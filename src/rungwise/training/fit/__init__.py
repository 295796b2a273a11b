"""Models that are fitted in closed form."""
