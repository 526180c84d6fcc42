"""GPU code through Triton: TTIR text → cubin, and the CUDA driver that loads it.

The only importer of triton, and only where a kernel must really be compiled: a cubin from the cache needs none of it.
"""
