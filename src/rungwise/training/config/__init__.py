"""Configurations of trainings and fits, as typed data."""
