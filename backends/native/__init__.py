"""LLVM in this process: machine code from LLVM IR text, calling it from Python, and the OpenMP runtime it runs on.

The only importer of llvmlite. Knows no dialect: what it gets is text, what it gives are addresses and callables.
"""
