"""Stores of vectors and records: the contract, and one room for each engine."""
