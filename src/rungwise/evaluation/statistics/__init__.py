"""Intervals, cross-validation and numbers by class."""
