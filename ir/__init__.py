"""The dialects and what they share: index expressions, layouts, errors. Knows xDSL and NumPy, never torch."""

DIALECTS = {
    "graph": ("graph", "Graph"),
    "loop": ("loop", "Loop"),
    "tile": ("tile", "Tile"),
    "host": ("host", "Host"),
    "tt": ("tt", "Triton"),
    "stepwell": ("shapes", "Stepwell"),
}
"""Dialect → module of this package and the `Dialect` object in it; imported only when text or a pass needs it."""
