"""The dialects and what they share: index expressions, layouts, errors. Knows xDSL and NumPy, never torch."""
