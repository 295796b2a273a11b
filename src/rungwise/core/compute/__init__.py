"""Threads, workers, memory and compiled kernels: the cores of the machine, used to the full and to the bit alike."""
