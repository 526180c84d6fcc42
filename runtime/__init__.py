"""On top of everything: compiles a graph, runs its plan, owns threads, memory, caches and the knobs."""
