"""The mathematics: plain scalar functions, which the kernels compile for CPU threads and for CUDA."""
