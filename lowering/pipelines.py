"""The table of passes. It holds names only, so that `xdsl-opt` can list every pass without importing one."""

PASSES: dict[str, tuple[str, str]] = {}
"""Pass → module of this package and the class in it: `graph-fold-constants` is `graph.fold_constants`."""
