"""The CPU backend: vector mathematics and the way from tile kernels to LLVM IR. Never imports the lowerings."""
