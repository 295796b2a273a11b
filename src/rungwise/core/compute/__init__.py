"""Threads, workers, memory and compiled kernels: all cores of the machine, and results that are the same to the bit."""
