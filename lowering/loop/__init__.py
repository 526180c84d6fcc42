"""Passes within the loop level: fusion of kernels, and what makes their nests simple."""
