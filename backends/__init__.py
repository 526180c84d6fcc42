"""What turns tile kernels into machine code, one folder per target. Backends never import each other's targets,
the frontend or the lowerings; `native` is the LLVM layer that any of them may use."""
