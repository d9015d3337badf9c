"""The loops of CUDA devices: the formulas and the finishing pieces are those of the CPU.

Importing one of these modules imports `numba.cuda`; nothing of the package does so before a GPU array arrives.
"""
