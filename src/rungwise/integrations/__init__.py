"""Adapters to programs where people train and evaluate: one module a program, which an extra of its name brings."""
